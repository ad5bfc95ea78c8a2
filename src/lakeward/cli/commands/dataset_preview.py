"""`lakeward dataset preview`: a few rows."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table

WhereOption = Annotated[
    str | None, typer.Option("--where", metavar="SQL", help="Only rows for which this predicate is true.")
]
VersionOption = Annotated[
    int | None, typer.Option("--version", metavar="N", min=1, help="As it was at this version; none: the newest.")
]

SinceOption = Annotated[
    int | None, typer.Option("--since", metavar="N", min=0, help="Only rows written after this version.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "preview")(preview)


def preview(
    session: Session,
    dataset: DatasetArgument,
    rows: Annotated[int, typer.Option("--rows", "-n", min=0, help="How many rows.")] = 10,
    where: WhereOption = None,
    version: VersionOption = None,
    since: SinceOption = None,
    identity: Annotated[
        bool, typer.Option("--identity", help="Also the identity columns, __row_id and so on.")
    ] = False,
) -> None:
    """Show the first rows, in the order of writing. Long values are cut, in text only."""
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        first = handle.preview(rows, where, version, identity, since)
        name, total = handle.name, handle.row_count
    names, found = first.column_names, first.to_pylist()
    numbers = [column for column in names if any(isinstance(row[column], int | float) for row in found)]
    narrowed = where or version or since is not None
    lines: list[RenderableType] = [
        table(names, ([row[column] for column in names] for row in found), numbers),
        f"{counted(len(found), 'row')} shown" if narrowed else f"{len(found):,} of {counted(total, 'row')}",
    ]
    session.show({"dataset": name, "columns": names, "rows": found}, lines)
