"""`lakeward model list`: every version of every model."""

from __future__ import annotations

import typer

from lakeward.cli.command import command
from lakeward.cli.session import Session
from lakeward.cli.text import table


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "list")(list_models)


def list_models(session: Session) -> None:
    """List the registered models and their versions.

    And what a build wrote with one that it fitted.
    """
    with session.workspace() as workspace:
        versions = workspace.models()
    rows = [
        (
            each.reference,
            each.format,
            ", ".join(feature.name for feature in each.signature.features),
            ", ".join(output.name for output in each.signature.outputs),
            each.size,
            each.added_at.strftime("%Y-%m-%d %H:%M"),
            each.added_by,
            ", ".join(each.datasets),
        )
        for each in versions
    ]
    columns = ("model", "format", "features", "outputs", "bytes", "added", "by", "with")
    lines = [table(columns, rows, ("bytes",))] if rows else ["no models yet"]
    steps = [] if rows else ["lakeward model add FILE --name NAME"]
    session.show({"models": [each.to_json() for each in versions]}, lines, steps)
