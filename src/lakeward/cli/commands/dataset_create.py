"""`lakeward dataset create`: make a dataset without rows."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.columns import parse_columns, parse_names
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.control.routes import check_arm

ColumnsOption = Annotated[
    str | None,
    typer.Option("--columns", metavar="NAME:TYPE,…", help="Columns in order, as in id:long,price:decimal(18,4)."),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="NAME=TYPE", help="One column more; for names with a colon or comma."),
]
KeyOption = Annotated[
    list[str] | None,
    typer.Option("--key", metavar="COLUMN", help="A column of the primary key; repeat it, or use commas."),
]
ArmOption = Annotated[
    str | None,
    typer.Option(
        "--arm",
        metavar="ARM",
        help="Where its rows will live: postgres or iceberg. None: as the flag of its writer says.",
    ),
]
PartitionOption = Annotated[
    list[str] | None,
    typer.Option(
        "--partition-by",
        metavar="FIELD",
        help="Partitions of its Iceberg table, as in region, day(ts) or bucket(16, id); repeat it for more.",
    ),
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "create")(create)


def create(
    session: Session,
    dataset: DatasetArgument,
    columns: ColumnsOption = None,
    column: ColumnOption = None,
    key: KeyOption = None,
    arm: ArmOption = None,
    partition_by: PartitionOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Make a dataset without rows.

    Its catalog and schema are made, too, if they are missing. If it exists as declared, nothing happens; if it exists
    and is another, that is an error.
    """
    check_arm(arm)
    declared, keys = parse_columns(columns, column or []), parse_names(key or [])
    if dry_run:
        with session.rehearsal() as (workspace, before):
            declaration = workspace.declare_dataset(dataset, declared, keys, arm, partition_by)
        actions = declaration.actions()
        session.show_actions([*before, *actions] if actions else [], "the same command without --dry-run")
        return
    with session.workspace(make=True) as workspace:
        declaration = workspace.declare_dataset(dataset, declared, keys, arm, partition_by)
        made = workspace.ensure_dataset(declaration)
        record = made.record
    created = declaration.existing is None
    done = "created" if created else "exists already, as declared; nothing to do"
    session.show(
        {"dataset": record.name, "created": created, "arm": record.arm},
        [f"dataset {record.name} on the {record.arm} arm: {done}"],
        [lakeward("dataset", "import", record.name, "FILE")] if created else [],
    )
