"""`lakeward dataset history`: what was written to one dataset."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.commands.history_table import history_table
from lakeward.cli.commands.ledger import MostOption
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "history")(history)


def history(
    session: Session,
    dataset: DatasetArgument,
    most: MostOption = 100,
    every: Annotated[bool, typer.Option("--all", help="Also writes that had nothing to write.")] = False,
) -> None:
    """Show a dataset's transactions, newest first.

    Each committed one is a version. It can be read until it expires, or a flip removes the only rows of it, and is told
    then. A write or build whose rows were all there already changed nothing, and is shown with --all only.
    """
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        found = handle.history(most, idle=every)
    steps = []
    readable = [each.version for each in found if each.readable]
    if len(readable) > 1:
        steps = [lakeward("dataset", "preview", handle.name, "--version", readable[-1])]
    lines = [history_table(found, dataset=False)] if found else ["nothing was ever written to it"]
    session.show({"dataset": handle.name, "transactions": [each.to_json() for each in found]}, lines, steps)
