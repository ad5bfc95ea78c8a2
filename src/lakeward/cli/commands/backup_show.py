"""`lakeward backup show`: what a backup has."""

from __future__ import annotations

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.commands.backup_create import FileArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import table


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "show")(show)


def show(session: Session, file: FileArgument) -> None:
    """Show what a backup has: its datasets, and the Iceberg snapshots that it refers to."""
    found = heavy("lakeward.wiring.backup").read_backup(file)
    rows = [(name, each["version"], each["rows"], len(each["snapshots"])) for name, each in found.datasets.items()]
    lines: list[RenderableType] = [
        f"made at {found.at} by lakeward {found.made_by}, tables at {found.revision}; warehouse {found.warehouse}",
        table(("dataset", "version", "rows", "snapshots"), rows),
    ]
    session.show(found.to_json(), lines, [lakeward("backup", "restore", str(file))])
