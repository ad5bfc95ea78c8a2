"""`lakeward source list`: every source, and by what it is reached."""

from __future__ import annotations

import typer

from lakeward.cli.command import command
from lakeward.cli.session import Session
from lakeward.cli.text import table


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "list")(list_sources)


def list_sources(session: Session) -> None:
    """List the sources.

    With the references by which they are reached, and the tables that are synced.
    """
    with session.workspace() as workspace:
        sources = workspace.sources.all()
    rows = [
        (
            each.name,
            each.type,
            ", ".join(f"{name} {_shown(value)}" for name, value in each.options.items()),
            ", ".join(each.tables) or "every table",
            each.added_at.strftime("%Y-%m-%d %H:%M"),
            each.added_by,
        )
        for each in sources
    ]
    lines = [table(("source", "type", "reached by", "tables", "added", "by"), rows)] if rows else ["no sources yet"]
    steps = [] if rows else ["lakeward source add NAME --type postgres --url env:PGURL"]
    documents = [{**vars(each), "tables": list(each.tables), "added_at": each.added_at.isoformat()} for each in sources]
    session.show({"sources": documents}, lines, steps)


def _shown(value: object) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)
