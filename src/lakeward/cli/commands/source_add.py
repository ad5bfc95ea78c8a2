"""`lakeward source add`: make a database or files known, a secret by a reference to where it stands."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from lakeward.cli.columns import parse_names
from lakeward.cli.command import command
from lakeward.cli.commands.dataset_import import DelimiterOption, EncodingOption, NullOption, file_options
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted
from lakeward.errors import UsageError

SourceArgument = Annotated[str, typer.Argument(metavar="NAME", help="The source's name.", show_default=False)]
UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url",
        metavar="REF",
        show_default=False,
        help="Where it is: env:NAME or file:/path, which hold a URL; or a URL without a password.",
    ),
]
PathOption = Annotated[
    list[str] | None,
    typer.Option(
        "--path",
        metavar="PATTERN",
        help="Files: 'data/*.csv', a folder, s3://bucket/key; NAME=PATTERN names the table. Repeat it for more tables.",
    ),
]
FormatOption = Annotated[
    str | None, typer.Option("--format", metavar="NAME", help="Files: their format; none: by their names.")
]
MoreOption = Annotated[
    list[str] | None,
    typer.Option(
        "--option",
        metavar="NAME=VALUE",
        help="Any option of the type, or of the files' format; repeat it. See docs/sources.md.",
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
    url: UrlOption = None,
    type_: Annotated[
        str | None,
        typer.Option("--type", metavar="TYPE", help="What it is: postgres, files. None: by --url or --path."),
    ] = None,
    table: TableOption = None,
    path: PathOption = None,
    format_: FormatOption = None,
    delimiter: DelimiterOption = None,
    null: NullOption = None,
    encoding: EncodingOption = None,
    option: MoreOption = None,
) -> None:
    """Make a database or files known.

    It has to answer, and every column of the tables that are named to have a type here.

    A password is never stored: the URL stands in a variable (env:PGURL) or a file (file:/run/secrets/pgurl), which is
    read whenever the source is. Nothing in a source is ever changed; a user who may only read is enough.

    Files: each --path is a table, named as its files begin or as their folder, or as you say (NAME=PATTERN).
    """
    options = {"url": url, "path": path, "format": format_, **file_options(null, delimiter, encoding)}
    given = {**{key: value for key, value in options.items() if value}, **parse_options(option or [])}
    with session.workspace(make=True) as workspace:
        added = workspace.sources.add(name, type_ or _told(given), given, parse_names(table or []), session.say)
    tables = counted(len(added.tables), "table") if added.tables else "every table"
    document = {"name": added.name, "type": added.type, "options": dict(added.options), "tables": list(added.tables)}
    lines = [f"added source {added.name}: {added.type}, {tables}"]
    session.show(document, lines, [lakeward("source", "tables", name), lakeward("source", "sync", name)])


def parse_options(texts: list[str]) -> dict[str, Any]:
    """Return options by their names, in a list those that come more than once.

    Raises:
        UsageError: a text is no NAME=VALUE.
    """
    found: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"--option {name} has no value", next_step=f"write --option {name or 'NAME'}=VALUE")
        known = found.get(name)
        found[name] = value if known is None else [*(known if isinstance(known, list) else [known]), value]
    return found


def _told(options: dict[str, Any]) -> str:
    """Return the type of source that has such options."""
    return "files" if "path" in options else "postgres"
