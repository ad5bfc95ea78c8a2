"""`lakeward backup`: the group of commands about backups of a workspace."""

from __future__ import annotations

import typer

from lakeward.cli.commands import backup_create, backup_restore, backup_show


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Backups of the database of a workspace: make, look at, restore.", no_args_is_help=True)
    for module in (backup_create, backup_restore, backup_show):
        module.register(group)
    app.add_typer(group, name="backup")
