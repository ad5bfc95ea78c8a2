"""`lakeward dataset show`: everything about one dataset but its rows."""

from __future__ import annotations

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_expectations import summary
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "show")(show)


def show(session: Session, dataset: DatasetArgument) -> None:
    """Show all about a dataset.

    Columns, key, arm, route, version, rows, digest, and where each arm holds the newest version.
    """
    with session.workspace() as workspace:
        found = workspace.dataset(dataset)
        record = found.record
        digest = str(found.digest())
        places = found.locate()
        judged = found.expectations(most=1)
    route = record.route
    document = {
        "name": record.name,
        "arm": record.arm,
        "mode": route.mode,
        "primary": route.primary_arm,
        "mirror": route.mirror_arm,
        "version": record.head_version,
        "row_count": record.row_count,
        "digest": digest,
        "status": record.status,
        "columns": {column.name: str(column.type) for column in record.schema.columns},
        "primary_key": list(record.schema.primary_key),
        "partition_by": list(record.partition_by),
        "created_at": record.created_at,
        "places": places,
        "expectations": judged[0].to_json() if judged else None,
    }
    key = set(record.schema.primary_key)
    columns = [(column.name, str(column.type), "key" if column.name in key else "") for column in record.schema.columns]
    lines: list[RenderableType] = [
        f"dataset  {record.name}",
        f"arm      {record.arm} (mode {route.mode}, mirror {route.mirror_arm or 'none'})",
        f"version  {record.head_version}, {counted(record.row_count, 'row')}, {record.status}",
        f"digest   {digest}",
        *([f"expects  {summary(judged[0])}"] if judged else []),
        *([f"divided  by {', '.join(record.partition_by)}"] if record.partition_by else []),
        *(
            f"on {arm}: {', '.join(f'{name} {value}' for name, value in place.items())}"
            for arm, place in places.items()
        ),
        table(("column", "type", ""), columns),
    ]
    steps = [lakeward("dataset", "preview", record.name)]
    if judged:
        steps.append(lakeward("dataset", "expectations", record.name))
    if not record.head_version and not judged:
        steps = [lakeward("dataset", "import", record.name, "FILE")]
    session.show(document, lines, steps)
