"""`lakeward schema`: the level of the tree in which datasets are."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands import tree_names
from lakeward.cli.commands.tree_names import AsOption, CascadeOption, DroppedOption, NewNameArgument, YesOption
from lakeward.cli.session import Session

SchemaArgument = Annotated[
    str,
    typer.Argument(metavar="SCHEMA", show_default=False, help="Its full name, catalog.schema."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Schemas: make, list, rename, drop.", no_args_is_help=True)
    for name, run in (
        ("create", create),
        ("list", list_schemas),
        ("rename", rename),
        ("drop", drop),
        ("undrop", undrop),
    ):
        command(group, name)(run)
    app.add_typer(group, name="schema")


def create(session: Session, schema: SchemaArgument, dry_run: DryRunOption = False) -> None:
    """Make a schema; nothing happens if it is there.

    Its catalog is made, too, if that is missing. Its name is any text. In tables and files it is called by its slug,
    which is made of the name once and never changes.
    """
    tree_names.create(session, "schema", schema, dry_run=dry_run)


def list_schemas(session: Session, dropped: DroppedOption = False) -> None:
    """List every schema with its slug, and how much is in it."""
    tree_names.show_list(session, "schema", dropped=dropped)


def rename(session: Session, schema: SchemaArgument, new_name: NewNameArgument, dry_run: DryRunOption = False) -> None:
    """Give a schema another name in its catalog.

    Its slug stays, and with it every table and file. Full names with the old one are unknown from then on;
    their error says the new one.
    """
    tree_names.rename(session, "schema", schema, new_name, dry_run=dry_run)


def drop(
    session: Session,
    schema: SchemaArgument,
    cascade: CascadeOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Drop a schema, so that it can come back for some days.

    Refused while something is in it, unless all of that is dropped with it. The setting `retention.dropped_days` says
    how long it can come back; then `maintain` removes it for good. Its name has to be typed, or --yes given.
    """
    tree_names.drop(session, "schema", schema, cascade=cascade, yes=yes, dry_run=dry_run)


def undrop(session: Session, schema: SchemaArgument, as_: AsOption = None, dry_run: DryRunOption = False) -> None:
    """Bring a schema back, with what was dropped in the same step."""
    tree_names.undrop(session, "schema", schema, as_, dry_run=dry_run)
