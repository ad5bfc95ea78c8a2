"""`lakeward dataset adopt`: bring an Iceberg table that another engine wrote under a dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.columns import parse_names
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_create import KeyOption
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session

Table = Annotated[str, typer.Argument(metavar="ICEBERG_TABLE", help="Its name in the catalog: NAMESPACE.TABLE.")]
As = Annotated[str | None, typer.Option("--as", metavar="NAME", help="The dataset's full name [default: the table's].")]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="ADDRESS", help="Files below this address outside the warehouse are allowed."),
]
AddIdentity = Annotated[
    bool, typer.Option("--add-identity", help="Write the rows anew at once, with their identity columns.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "adopt")(adopt)


def adopt(
    session: Session,
    table: Table,
    name: As = None,
    key: KeyOption = None,
    allow: Allow = None,
    add_identity: AddIdentity = False,
    dry_run: DryRunOption = False,
) -> None:
    """Bring an existing Iceberg table under a dataset.

    Nothing is copied: the snapshot that the table is at becomes version 1. The rows get identity columns with the first
    write, which writes them anew as a version of its own; `--add-identity` does that at once.
    """
    keys = parse_names(key or [])
    with session.workspace() as workspace:
        plan = workspace.adopting.plan(table, name, keys, allow=allow or (), add_identity=add_identity)
        if dry_run:
            session.show_actions(plan.actions(), "the same command without --dry-run")
            return
        result = workspace.adopting.run(plan)
    outside = "" if plan.table.inside else "; its files are outside of the warehouse, and are never removed"
    what = f"{table} is dataset {plan.name}: version {result.version}, {plan.rows:,} rows{outside}"
    lines = [what if plan.actions() else f"{what}; it was before, nothing to do"]
    session.show({**plan.to_json(), "version": result.version}, lines, [lakeward("dataset", "show", plan.name)])
