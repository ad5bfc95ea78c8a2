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
    """Compare the digests of a dataset's arms.

    Every arm that holds the newest version is read from end to end. Exit code 4 if they differ.
    """
    with session.workspace() as workspace:
        parity = workspace.dataset(dataset).verify()
    lines = [f"{arm:<9} {digest}" for arm, digest in parity.digests.items()]
    steps = []
    if not lines:
        lines = [f"{parity.dataset} has no rows yet: there is nothing to compare"]
    elif len(lines) == 1:
        other = "iceberg" if "postgres" in parity.digests else "postgres"
        lines.append(f"version {parity.version} is on one arm only, so that there is nothing to compare with")
        steps = [lakeward("dataset", "copy", parity.dataset, "--to", other)]
    else:
        lines.append(f"equal: version {parity.version} is the same on {len(lines)} arms")
    session.show(parity.to_json(), lines, steps)
