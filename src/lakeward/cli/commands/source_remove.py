"""`lakeward source remove`: forget a source."""

from __future__ import annotations

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.source_add import SourceArgument
from lakeward.cli.session import Session


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "remove")(remove)


def remove(session: Session, name: SourceArgument) -> None:
    """Forget a source. Its datasets stay, and go on where they were if it is added again by the same name."""
    with session.workspace() as workspace:
        workspace.sources.remove(name)
    session.show({"removed": name}, [f"removed source {name}; the datasets that it fed are unchanged"])
