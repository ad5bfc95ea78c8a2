"""`lakeward dataset changes`: what became of a dataset's rows since a version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import RenderableType

from lakeward.cli.columns import parse_names
from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.commands.dataset_preview import VersionOption
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table
from lakeward.types.schema import IDENTITY_COLUMNS, OP, ROW_ID

if TYPE_CHECKING:
    import pyarrow as pa

_OPERATIONS = ("before", "update", "insert", "delete")
"""The two images of a row that was updated stand in this order."""


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

    It is the net change between two versions, whatever happened in between. Rows are in the order of the primary key,
    or, without one, in that in which they were written first.
    """
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        newest = handle.version if version is None else version
        reader = handle.changes(
            since,
            version=newest or None,
            columns=parse_names(select) if select else None,
            before=before,
            identity=True,
        )
        name, names = handle.name, [each for each in reader.schema.names if identity or each not in IDENTITY_COLUMNS]
        with reader:
            found = _first(reader, handle.schema.primary_key, limit + 1)
    more, found = len(found) > limit, found[:limit]
    numbers = [column for column in names if any(isinstance(row[column], int | float) for row in found)]
    counts = Counter(row["__op"] for row in found)
    told = ", ".join(f"{counts[each]:,} {each}" for each in ("insert", "update", "before", "delete") if counts[each])
    shown = f"{counted(len(found), 'row')} from version {since} to {newest}: {told or 'nothing changed'}"
    lines: list[RenderableType] = [
        *([table(names, ([row[column] for column in names] for row in found), numbers)] if found else []),
        f"{shown}; there are more: --limit" if more else shown,
    ]
    rows = [{column: row[column] for column in names} for row in found]
    document = {"dataset": name, "since": since, "version": newest, "columns": names, "rows": rows, "more": more}
    session.show(document, lines)


def _first(reader: pa.RecordBatchReader, primary_key: Sequence[str], most: int) -> list[dict[str, Any]]:
    """Return the first rows in their order; no more than that many are held at a time."""
    key = [*(primary_key if set(primary_key) <= set(reader.schema.names) else ()), ROW_ID]
    rows = (row for batch in reader for row in batch.to_pylist())
    return nsmallest(most, rows, key=lambda row: ([row[column] for column in key], _OPERATIONS.index(row[OP])))
