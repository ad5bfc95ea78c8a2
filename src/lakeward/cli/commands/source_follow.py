"""`lakeward source follow`: read the log of changes of a source, until it is told to stop."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Annotated

import typer

from lakeward.cli.columns import parse_names
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_create import ArmOption
from lakeward.cli.commands.source_add import SourceArgument
from lakeward.cli.commands.source_sync import IntoOption, KeyOption, TextOption
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted

FollowedTableOption = Annotated[
    list[str] | None,
    typer.Option(
        "--table", metavar="TABLE", help="A table to follow from now on; repeat it. None: those that are followed."
    ),
]
FollowModeOption = Annotated[
    str | None,
    typer.Option("--mode", metavar="MODE", help="changes: the dataset equals the table. append: each change is a row."),
]
SecondsOption = Annotated[
    float | None,
    typer.Option("--seconds", metavar="N", min=0.01, help="End after so many seconds.", show_default=False),
]
OnceOption = Annotated[bool, typer.Option("--once", help="End when what the source has logged by now is here.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "follow")(follow)


def follow(
    session: Session,
    name: SourceArgument,
    table: FollowedTableOption = None,
    mode: FollowModeOption = None,
    into: IntoOption = None,
    key: KeyOption = None,
    text: TextOption = None,
    arm: ArmOption = None,
    once: OnceOption = False,
    seconds: SecondsOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Follow changes of tables as they are committed.

    It goes on until Ctrl-C or SIGTERM.

    Tables that are new are copied first, from the moment at which their log begins. Then changes are written in
    micro-batches of whole transactions: those of all tables become visible together, in the source's order, each
    exactly once, also across crashes. What is followed is remembered: without --table it goes on.

    A source or database that is being restarted is waited for. An error that needs a person ends it; what was before is
    here, and the source keeps the rest. The source keeps its log as long as nobody follows: see `source logs`.
    """
    plan = heavy("lakeward.wiring.follow_plan")
    request = plan.FollowRequest(
        source=name,
        tables=parse_names(table or []),
        mode=mode,
        into=into,
        key=parse_names(key or []),
        text=parse_names(text or []),
        arm=arm,
    )
    if dry_run:
        with session.workspace() as workspace:
            actions = workspace.sources.plan_follow(request).actions()
        session.show_actions(actions, "the same command without --dry-run")
        return
    with session.workspace() as workspace, _stopping(seconds) as stop:
        if not once:
            session.say(f"following {name}; Ctrl-C ends it after the changes under way")
        done = workspace.sources.follow(request, once=once, stop=stop, say=session.say, progress=session.progress)
    line = (
        f"followed {name}: {counted(done.changes, 'change')} in {done.batches:,} batches, "
        f"{counted(done.copied, 'row')} copied, in {done.seconds:.1f} s"
    )
    session.show({**vars(done), "seconds": round(done.seconds, 3)}, [line], [lakeward("source", "logs")])


@contextmanager
def _stopping(seconds: float | None) -> Iterator[threading.Event]:
    """Let Ctrl-C and SIGTERM ask for the end, for the length of a block; a second Ctrl-C ends it at once."""
    stop = threading.Event()

    def asked(number: int, frame: FrameType | None) -> None:
        if stop.is_set() and number == signal.SIGINT:
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
    timer = threading.Timer(seconds, stop.set) if seconds is not None else None
    if timer is not None:
        timer.daemon = True
        timer.start()
    try:
        yield stop
    finally:
        if timer is not None:
            timer.cancel()
        for number, handler in before.items():
            signal.signal(number, handler)
