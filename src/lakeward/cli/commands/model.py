"""`lakeward model`: the group of commands about registered models."""

from __future__ import annotations

import typer

from lakeward.cli.commands import model_add, model_list, model_show


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Models that pipelines predict with: add, look at.", no_args_is_help=True)
    for module in (model_add, model_list, model_show):
        module.register(group)
    app.add_typer(group, name="model")
