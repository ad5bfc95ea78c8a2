"""`lakeward source add`: make a database known by a reference to how it is reached."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.columns import parse_names
from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted

SourceArgument = Annotated[str, typer.Argument(metavar="NAME", help="The source's name.", show_default=False)]
UrlOption = Annotated[
    str,
    typer.Option(
        "--url",
        metavar="REF",
        show_default=False,
        help="Where it is: env:NAME or file:/path, which hold a URL; or a URL without a password.",
    ),
]
TableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="TABLE", help="A table that is synced if none is named; repeat it. None: every table."
    ),
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "add")(add)


def add(
    session: Session,
    name: SourceArgument,
    url: UrlOption,
    type_: Annotated[str, typer.Option("--type", metavar="TYPE", help="What it is: postgres.")] = "postgres",
    table: TableOption = None,
) -> None:
    """Make a database known, once it answers and every column of the named tables has a type here.

    A password is never stored: the URL stands in a variable (env:PGURL) or a file (file:/run/secrets/pgurl), which is
    read whenever the source is. Nothing in the database is ever changed; a user who may only read is enough.
    """
    with session.workspace(make=True) as workspace:
        added = workspace.sources.add(name, type_, {"url": url}, parse_names(table or []))
    tables = counted(len(added.tables), "table") if added.tables else "every table"
    document = {"name": added.name, "type": added.type, "options": dict(added.options), "tables": list(added.tables)}
    lines = [f"added source {added.name}: {added.type}, {tables}"]
    session.show(document, lines, [lakeward("source", "tables", name), lakeward("source", "sync", name)])
