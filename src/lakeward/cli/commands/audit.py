"""`lakeward audit`: who changed what."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.session import Session
from lakeward.cli.text import table

MOST_LETTERS = 80


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="The audit log.", no_args_is_help=True)
    command(group, "list")(show)
    app.add_typer(group, name="audit")


def show(
    session: Session,
    who: Annotated[str | None, typer.Option("--who", metavar="NAME", help="Changed by them only.")] = None,
    action: Annotated[
        str | None, typer.Option("--action", metavar="ACTION", help="As flip.run, or flip for all that begin so.")
    ] = None,
    subject: Annotated[
        str | None, typer.Option("--subject", metavar="NAME", help="The full name of what was changed.")
    ] = None,
    since: Annotated[datetime | None, typer.Option("--since", metavar="TIME", help="From when on.")] = None,
    most: Annotated[int, typer.Option("--most", min=1, help="At most so many.")] = 100,
) -> None:
    """List who changed what, newest first, with what was there before and after.

    Versions of datasets are in it, too. With --output json, each has all of what was before and after.
    """
    with session.workspace() as workspace:
        found = workspace.access.audit(who=who, action=action, subject=subject, since=since, most=most)
    rows = [
        (f"{each.at:%Y-%m-%d %H:%M:%S}", each.actor, each.action, each.subject, _short(each.before), _short(each.after))
        for each in found
    ]
    columns = ("when", "who", "what", "of", "before", "after")
    lines = [table(columns, rows)] if rows else ["nothing was changed"]
    session.show({"changes": [each.to_json() for each in found]}, lines)


def _short(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False) if value is not None else ""
    return text if len(text) <= MOST_LETTERS else text[: MOST_LETTERS - 1] + "…"
