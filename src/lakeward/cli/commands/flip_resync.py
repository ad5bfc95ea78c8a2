"""`lakeward flip resync`: a new copy for the arm that does not serve."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.confirm import confirm
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.errors import UsageError
from lakeward.migration.options import Options

PaceOption = Annotated[
    int | None, typer.Option("--rows-per-second", min=1, show_default=False, help="Read no faster than this.")
]
ConfirmOption = Annotated[
    str | None, typer.Option("--confirm", metavar="DATASET", show_default=False, help="The name, instead of typing it.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "resync")(resync)


def resync(
    session: Session,
    dataset: DatasetArgument,
    rows_per_second: PaceOption = None,
    confirmed: ConfirmOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Remove the copy that does not serve, and make it anew.

    What to do when the arms differ: nothing of the old copy is built upon. The arm that serves is left alone, readers
    and writers go on, and all rows are compared at the end. The dataset's name has to be typed, or given.
    """
    with session.workspace() as workspace:
        comparisons, name = workspace.comparisons, workspace.dataset(dataset).name
        actions = comparisons.explain_resync(name)
        if dry_run:
            session.show_actions(actions, lakeward("flip", "resync", name))
            return
        for action in actions if confirmed is None else ():
            session.say(action)
        _check_typed(name, confirmed)
        done = comparisons.resync(name, session.progress, Options(rows_per_second=rows_per_second))
    line = f"{name} has a new copy, compared: version {done['version']}, {done['rows']:,} rows, equal"
    session.show({"dataset": name, **done}, [line], [lakeward("flip", "status", name)])


def _check_typed(name: str, confirmed: str | None) -> None:
    if confirmed is None:
        confirm(name)
    elif confirmed != name:
        raise UsageError(
            f"{confirmed!r} is not {name}", safe="nothing was changed", next_step=f"--confirm {name}", name=name
        )
