"""`lakeward source tables`: what a source has, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.source_add import SourceArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table

if TYPE_CHECKING:
    from lakeward.sources.connector import SourceTable


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "tables")(tables)


def tables(session: Session, name: SourceArgument) -> None:
    """Ask a source for its tables.

    Keys, rows as it believes, columns with their types here, and what is refused.

    Of files: how many there are. Their columns are those of their dataset, or what `source sync --dry-run` finds.
    """
    with session.workspace() as workspace:
        found = workspace.sources.tables(name)
    rows = [
        (
            each.full_name,
            each.rows,
            ", ".join(each.primary_key),
            _modes(each),
            len(each.columns) if each.typed else "the dataset's",
            about or ", ".join(f"{column.name} {column.native}" for column in each.columns if column.type is None),
        )
        for each, about in found
    ]
    columns = ("table", "rows", "key", "modes", "columns", "files" if found and found[0][1] else "refused columns")
    lines = [table(columns, rows, ("rows", "columns"))] if rows else [f"source {name} has no table that can be read"]
    documents = [
        {
            "table": each.full_name,
            "rows": each.rows,
            "primary_key": list(each.primary_key),
            "followed": each.followed,
            "columns": [vars_of(column) for column in each.columns],
            "about": about,
        }
        for each, about in found
    ]
    session.show({"source": name, "tables": documents}, lines, [lakeward("source", "sync", name)] if rows else [])


def vars_of(column: object) -> dict[str, object]:
    """Return what a program is told of a column."""
    return {name: getattr(column, name) for name in ("name", "native", "type", "refused")}


def _modes(table: SourceTable) -> str:
    if table.followed and (table.primary_key or not table.typed):
        return "full, incremental, append"
    return "full, append" if table.followed else "full"
