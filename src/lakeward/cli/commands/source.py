"""`lakeward source`: the group of commands about databases that datasets are synced from."""

from __future__ import annotations

import typer

from lakeward.cli.commands import (
    source_add,
    source_follow,
    source_list,
    source_load,
    source_logs,
    source_remove,
    source_sync,
    source_tables,
    source_unfollow,
)


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Databases and files that datasets are synced from.", no_args_is_help=True)
    for module in (
        source_add,
        source_list,
        source_tables,
        source_sync,
        source_load,
        source_follow,
        source_logs,
        source_unfollow,
        source_remove,
    ):
        module.register(group)
    app.add_typer(group, name="source")
