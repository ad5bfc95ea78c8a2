"""`lakeward catalog`: the outermost level of the tree."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands import tree_names
from lakeward.cli.commands.tree_names import AsOption, CascadeOption, DroppedOption, NewNameArgument, YesOption
from lakeward.cli.session import Session

CatalogArgument = Annotated[
    str,
    typer.Argument(metavar="CATALOG", show_default=False, help="Its name; in double quotes if it holds a dot."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Catalogs: make, list, rename, drop.", no_args_is_help=True)
    for name, run in (
        ("create", create),
        ("list", list_catalogs),
        ("rename", rename),
        ("drop", drop),
        ("undrop", undrop),
    ):
        command(group, name)(run)
    app.add_typer(group, name="catalog")


def create(session: Session, catalog: CatalogArgument, dry_run: DryRunOption = False) -> None:
    """Make a catalog; nothing happens if it is there.

    Its name is any text. In tables and files it is called by its slug, which is made of the name once and never
    changes.
    """
    tree_names.create(session, "catalog", catalog, dry_run=dry_run)


def list_catalogs(session: Session, dropped: DroppedOption = False) -> None:
    """List every catalog with its slug, and how much is in it."""
    tree_names.show_list(session, "catalog", dropped=dropped)


def rename(
    session: Session, catalog: CatalogArgument, new_name: NewNameArgument, dry_run: DryRunOption = False
) -> None:
    """Give a catalog another name.

    Its slug stays, and with it every table and file. Full names that begin with the old one are unknown from then on;
    their error says the new one.
    """
    tree_names.rename(session, "catalog", catalog, new_name, dry_run=dry_run)


def drop(
    session: Session,
    catalog: CatalogArgument,
    cascade: CascadeOption = False,
    yes: YesOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Drop a catalog, so that it can come back for some days.

    Refused while something is in it, unless all of that is dropped with it. The setting `retention.dropped_days` says
    how long it can come back; then `maintain` removes it for good. Its name has to be typed, or --yes given.
    """
    tree_names.drop(session, "catalog", catalog, cascade=cascade, yes=yes, dry_run=dry_run)


def undrop(session: Session, catalog: CatalogArgument, as_: AsOption = None, dry_run: DryRunOption = False) -> None:
    """Bring a catalog back, with what was dropped in the same step."""
    tree_names.undrop(session, "catalog", catalog, as_, dry_run=dry_run)
