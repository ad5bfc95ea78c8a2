"""`lakeward dataset changes`: what became of a dataset's rows since a version."""

from __future__ import annotations

from collections import Counter
from itertools import islice
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from lakeward.cli.columns import parse_names
from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.commands.dataset_preview import VersionOption
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "changes")(changes)


def changes(
    session: Session,
    dataset: DatasetArgument,
    since: Annotated[
        int,
        typer.Option("--since", metavar="N", min=0, help="The older version; 0: before the first.", show_default=False),
    ],
    version: VersionOption = None,
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="COLUMN", help="Only these columns; repeat it, or use commas."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many changed rows at most.")] = 100,
    before: Annotated[
        bool, typer.Option("--before/--no-before", help="Also what updated rows were before. Default: yes.")
    ] = True,
    identity: Annotated[
        bool, typer.Option("--identity", help="Also the identity columns, __row_id and so on.")
    ] = False,
) -> None:
    """Show which rows changed since a version.

    It is the net change between two versions, whatever happened in between.
    """
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        newest = handle.version if version is None else version
        reader = handle.changes(
            since,
            version=newest or None,
            columns=parse_names(select) if select else None,
            before=before,
            identity=identity,
        )
        with reader:
            found: list[dict[str, Any]] = list(
                islice((row for batch in reader for row in batch.to_pylist()), limit + 1)
            )
        name, names = handle.name, reader.schema.names
    more, found = len(found) > limit, found[:limit]
    numbers = [column for column in names if any(isinstance(row[column], int | float) for row in found)]
    counts = Counter(row["__op"] for row in found)
    told = ", ".join(f"{counts[each]:,} {each}" for each in ("insert", "update", "before", "delete") if counts[each])
    shown = f"{counted(len(found), 'row')} from version {since} to {newest}: {told or 'nothing changed'}"
    lines: list[RenderableType] = [
        *([table(names, ([row[column] for column in names] for row in found), numbers)] if found else []),
        f"{shown}; there are more: --limit" if more else shown,
    ]
    document = {"dataset": name, "since": since, "version": newest, "columns": names, "rows": found, "more": more}
    session.show(document, lines)
