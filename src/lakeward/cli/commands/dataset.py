"""`lakeward dataset`: the group of commands about one dataset each."""

from __future__ import annotations

import typer

from lakeward.cli.commands import (
    dataset_adopt,
    dataset_changes,
    dataset_copy,
    dataset_create,
    dataset_edit,
    dataset_expect,
    dataset_expectations,
    dataset_export,
    dataset_history,
    dataset_import,
    dataset_lineage,
    dataset_list,
    dataset_names,
    dataset_preview,
    dataset_show,
    dataset_undo_edit,
)


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Datasets: make, look at, fill, edit, copy, drop.", no_args_is_help=True)
    for module in (
        dataset_create,
        dataset_list,
        dataset_show,
        dataset_preview,
        dataset_changes,
        dataset_history,
        dataset_expect,
        dataset_expectations,
        dataset_lineage,
        dataset_import,
        dataset_export,
        dataset_edit,
        dataset_undo_edit,
        dataset_copy,
        dataset_adopt,
        dataset_names,
    ):
        module.register(group)
    app.add_typer(group, name="dataset")
