"""`lakeward dataset rename`, `drop` and `undrop`: the dataset's name, its end, and its return."""

from __future__ import annotations

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands import tree_names
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.commands.tree_names import AsOption, NewNameArgument, YesOption
from lakeward.cli.session import Session


def register(group: typer.Typer) -> None:
    """Add the commands."""
    for name, run in (("rename", rename), ("drop", drop), ("undrop", undrop)):
        command(group, name)(run)


def rename(
    session: Session, dataset: DatasetArgument, new_name: NewNameArgument, dry_run: DryRunOption = False
) -> None:
    """Give a dataset another name in its schema.

    Its slug stays, and with it its table and files; so do its history, flags and flip. Pipelines that name it by the
    old name fail from then on, with an error that says the new one.
    """
    tree_names.rename(session, "dataset", dataset, new_name, dry_run=dry_run)


def drop(session: Session, dataset: DatasetArgument, yes: YesOption = False, dry_run: DryRunOption = False) -> None:
    """Drop a dataset, so that it can come back for some days.

    Writers under way are waited for. From then on nobody reads or writes it, and its name is free; its rows, table and
    files stay as they are. The setting `retention.dropped_days` says how long it can come back; then `maintain` removes
    it for good. Its name has to be typed, or --yes given.
    """
    tree_names.drop(session, "dataset", dataset, cascade=False, yes=yes, dry_run=dry_run)


def undrop(session: Session, dataset: DatasetArgument, as_: AsOption = None, dry_run: DryRunOption = False) -> None:
    """Bring a dataset back, exactly as it was.

    Its versions, history and route are those of before. Its schema and catalog come back with it if they are dropped.
    """
    tree_names.undrop(session, "dataset", dataset, as_, dry_run=dry_run)
