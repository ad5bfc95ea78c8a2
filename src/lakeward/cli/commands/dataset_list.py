"""`lakeward dataset list`: every dataset."""

from __future__ import annotations

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.tree_names import DroppedOption, show_list
from lakeward.cli.session import Session
from lakeward.cli.text import table


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "list")(list_datasets)


def list_datasets(session: Session, dropped: DroppedOption = False) -> None:
    """List every dataset by name, with its columns and key."""
    if dropped:
        show_list(session, "dataset", dropped=True)
        return
    with session.workspace() as workspace:
        records = [dataset.record for dataset in workspace.datasets()]
    document = {
        "datasets": [
            {
                "name": record.name,
                "arm": record.arm,
                "version": record.head_version,
                "row_count": record.row_count,
                "columns": {column.name: str(column.type) for column in record.schema.columns},
                "primary_key": list(record.schema.primary_key),
            }
            for record in records
        ]
    }
    rows = [
        (
            record.name,
            record.arm,
            record.head_version,
            f"{record.row_count:,}",
            len(record.schema.columns),
            ", ".join(record.schema.primary_key),
        )
        for record in records
    ]
    columns = ("dataset", "arm", "version", "rows", "columns", "key")
    lines = [table(columns, rows, ("version", "rows", "columns"))] if rows else ["no datasets yet"]
    session.show(document, lines, [] if rows else ["lakeward dataset import NAME FILE"])
