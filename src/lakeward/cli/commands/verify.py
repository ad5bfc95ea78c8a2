"""`lakeward verify`: are the arms of a dataset equal?"""

from __future__ import annotations

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "verify")(verify)


def verify(session: Session, dataset: DatasetArgument) -> None:
    """Compare all rows of a dataset's arms.

    Every arm that holds the newest version is read from end to end. Where two arms differ, the rows are found and shown
    by key, with what each arm has; what was found is kept. Exit code 4 if they differ.
    """
    with session.workspace() as workspace:
        parity = workspace.comparisons.verify(dataset)
    compared = parity.compared
    lines = [f"{arm:<9} {digest}" for arm, digest in parity.digests.items()]
    steps = []
    if not lines:
        lines = [f"{parity.dataset} has no rows yet: there is nothing to compare"]
    elif compared is None:
        other = "iceberg" if "postgres" in parity.digests else "postgres"
        lines.append(f"version {parity.version} is on one arm only, so that there is nothing to compare with")
        steps = [lakeward("dataset", "copy", parity.dataset, "--to", other)]
    elif compared.ignored:
        least = "" if compared.exact else "at least "
        counts = ", ".join(f"{column} {least}{count:,}" for column, count in compared.ignored.items())
        lines.append(f"version {parity.version} differs only where that is accepted, in rows by column: {counts}")
        steps = [lakeward("flip", "ignore", "list", parity.dataset)]
    else:
        lines.append(f"equal: version {parity.version} is the same on {len(parity.digests)} arms")
    if compared is not None and compared.expired:
        lines.append(f"rules that have expired, and count no more: {', '.join(compared.expired)}")
    session.show(parity.to_json(), lines, steps)
