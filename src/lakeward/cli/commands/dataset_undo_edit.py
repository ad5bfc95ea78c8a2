"""`lakeward dataset undo-edit`: a new version without what an edit changed."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_edit import MaxMegabytesOption, MaxRowsOption, YesOption
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.edit_text import apply_shown, check_can_ask, show_only
from lakeward.cli.session import Session, heavy


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "undo-edit")(undo_edit)


def undo_edit(
    session: Session,
    dataset: DatasetArgument,
    version: Annotated[
        int | None,
        typer.Argument(
            metavar="VERSION", help="The one that the edit made; none: the newest edit.", show_default=False
        ),
    ] = None,
    yes: YesOption = False,
    max_rows: MaxRowsOption = 10_000,
    max_mb: MaxMegabytesOption = 10,
    dry_run: DryRunOption = False,
) -> None:
    """Take an edit back, as a new version.

    What was written later stays. If a later write has changed a row of the edit, nothing is written, and the rows are
    named. The undo of an undo does the edit again.
    """
    check_can_ask(session, yes, dry_run)
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        editor = handle.editor.limited(heavy("lakeward.wiring.editing").Limits(max_rows, max_mb << 20))
        edit = editor.inverse(version)
        session.say(f"takes back version {edit.version} of {handle.name}:")
        if dry_run:
            show_only(session, editor, handle.name, edit, "the same command without --dry-run")
            return
        apply_shown(session, editor, handle.name, edit, yes)
