"""`lakeward ledger restore`: a dataset's Iceberg table is set back to our newest version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import DryRunOption
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.commands.ledger_adopt import SnapshotOption, expected
from lakeward.cli.confirm import confirm
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session

if TYPE_CHECKING:
    from lakeward.storage.foreign import ForeignState


def restore(
    session: Session,
    dataset: DatasetArgument,
    snapshot: SnapshotOption = None,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask for the dataset's name.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Set a table back after another engine wrote to it.

    The dataset's Iceberg table is at our newest version again. The other engine's snapshot stays in the table, under a
    tag `foreign-ID`; it can be read there, but `main` no longer shows its rows. So the dataset's name has to be typed,
    or --yes given. A dataset to which no other engine wrote stays as it is.
    """
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        state = handle.foreign()
        if dry_run:
            actions = _actions(state) if state else []
            if state is None and handle.status().status == "diverged":
                actions = ["allow writes again: main of its table is at our newest version"]
            session.show_actions(actions, lakeward("ledger", "restore", handle.name, *expected(snapshot)))
            return
        if state is not None and not yes:
            for action in _actions(state):
                session.say(action)
            confirm(handle.name)
        # Only what was shown is taken back, not what the other engine has committed since.
        shown = snapshot if snapshot is not None or state is None else state.found
        result = handle.restore(snapshot=shown)
    lines = [f"the table of {result.dataset} is at version {result.version} already: nothing to restore"]
    if result.done:
        lines = [f"the table of {result.dataset} is at version {result.version} again, and writes are allowed"]
        if result.kept is not None:
            lines.append(f"the other engine's snapshot {result.kept} stays under the tag foreign-{result.kept}")
    session.show(result.to_json(), lines, [lakeward("dataset", "show", result.dataset)] if result.done else [])


def _actions(state: ForeignState) -> list[str]:
    """Return what restoring would do."""
    actions = [f"find {state.dataset} changed by another engine: {state.why}"]
    if state.found != state.ours:
        actions.append(
            f"set main of its table from snapshot {state.found} to {state.ours}, our version {state.version}, in one "
            f"commit that keeps the other engine's snapshot under the tag foreign-{state.found}"
        )
    else:
        actions.append("give its table the columns of our version back")
    actions.append("allow writes again")
    return actions
