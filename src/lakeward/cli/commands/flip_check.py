"""`lakeward flip check`: what would become of a dataset's real values on the other arm?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.progress import duration
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table

if TYPE_CHECKING:
    from lakeward.migration.checking import Check

REFUSED = 3
"""The exit code of a dataset that can't be flipped as it is: something has to be changed first."""

ToOption = Annotated[
    str | None,
    typer.Option(metavar="ARM", show_default=False, help="postgres or iceberg; none: the one that does not serve."),
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "check")(check)


def check(session: Session, dataset: DatasetArgument, to: ToOption = None) -> None:
    """Say what a flip would do to the real values.

    Reads all rows of the newest version once and judges every value as a write does: each column is lossless, lossy
    (equal by digest, and not bit for bit) or refused, with examples by key. Also looked at: whether the other arm can
    be reached, may be written to and has room, what stands in the way, and how long the first copy will take. Changes
    nothing. Exit code 3 if the dataset can't be flipped as it is.
    """
    with session.workspace() as workspace:
        found = workspace.comparisons.check(dataset, to, session.progress)
    again = ("--to", found.to)
    steps = [each.next_step for each in found.abilities if not each.ok and each.next_step is not None]
    steps += [lakeward("flip", "start", found.dataset, *again, "--dry-run")] if found.ok else []
    session.show(found.to_json(), _lines(found), steps)
    if not found.ok:
        raise typer.Exit(REFUSED)


def _lines(found: Check) -> list[RenderableType]:
    lines: list[RenderableType] = []
    if found.certificate is None:
        lines.append(f"{found.dataset} has no rows yet: there is nothing to lose")
    else:
        rows, version = counted(found.certificate.rows, "row"), found.certificate.version
        lines.append(f"{found.dataset} version {version}, {rows}, from the {found.source} arm to the {found.to} arm")
        told = [
            (each.column, each.type, each.there, each.rows, each.nulls, each.range, each.verdict)
            for each in found.certificate.columns
        ]
        head = ("column", "type", f"on {found.to}", "rows", "nulls", "from, to", "verdict")
        lines.append(table(head, told, ("rows", "nulls")))
        lines += [
            f"{each.column}: {each.verdict}: {example}"
            for each in found.certificate.columns
            for example in each.examples
        ]
    lines += [f"{each.name}: {'' if each.ok else 'NOT SO: '}{each.found}" for each in found.abilities]
    if found.expectation is not None:
        lines.append(f"the first copy takes about {duration(found.expectation.seconds)}: {found.expectation.basis}")
    lines.append("it can be flipped" if found.ok else "it can't be flipped as it is")
    return lines
