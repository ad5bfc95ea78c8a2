"""`lakeward dataset copy`: the newest version to another arm."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "copy")(copy)


def copy(
    session: Session,
    dataset: DatasetArgument,
    to: Annotated[str, typer.Option("--to", metavar="ARM", help="postgres or iceberg.", show_default=False)],
    dry_run: DryRunOption = False,
) -> None:
    """Bring the newest version to another arm, verified by digest. The arm that serves readers stays the same."""
    started = time.monotonic()
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        if dry_run:
            status = handle.status()
            actions = [
                f"copy {counted(status.row_count, 'row')} of {handle.name} version {status.version} to the {to} arm",
                f"compare the digests of the {status.arm} and {to} arms",
                f"commit a new version of {handle.name}, which changes no row and is on both",
            ]
            session.show_actions(
                [] if to in status.holders else actions, lakeward("dataset", "copy", handle.name, "--to", to)
            )
            return
        result = handle.copy_to(to, session.progress.of(f"copying {handle.name} to the {to} arm", handle.row_count))
    seconds = time.monotonic() - started
    copied = counted(result.rows_in, "row")
    line = f"{copied} copied to the {to} arm in {seconds:.1f} s, digests equal; version {result.version}"
    if not result.committed:
        line = f"the {to} arm holds version {result.version} already; nothing to do"
    session.show(
        {**result.to_json(), "arm": to, "seconds": round(seconds, 3)}, [line], [lakeward("verify", result.dataset)]
    )
