"""`lakeward worker`: runs the jobs of a workspace."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.session import Session, heavy

if TYPE_CHECKING:
    from lakeward.jobs.worker import Worker


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "worker")(worker)


def worker(
    session: Session,
    width: Annotated[
        int | None, typer.Option("--width", min=1, max=16, metavar="N", help="Jobs at a time; else jobs.width.")
    ] = None,
    queues: Annotated[
        str, typer.Option("--queues", metavar="NAMES", help="Only these, apart by commas: build, flip, sync, upkeep.")
    ] = "",
    once: Annotated[bool, typer.Option("--once", help="End when no job waits that could be begun.")] = False,
) -> None:
    """Run the jobs of the workspace.

    Any number of workers may do so at once, on any number of machines. Jobs are begun as they are queued, by hand or by
    the schedules of pipelines and settings. SIGTERM or Ctrl-C ends it: it takes no more jobs, lets those that run go on
    for jobs.stop_seconds, and gives back what is left, which another worker then does. One that is killed loses
    nothing, either.
    """
    names = [name for name in queues.replace(",", " ").split() if name]
    if not once:
        session.log_as_service()
    with session.workspace() as workspace:
        running: Worker = heavy("lakeward.jobs.worker").Worker(workspace, width=width, queues=names, once=once)
        if not once:
            line = f"working on jobs, {running.width} at a time; Ctrl-C ends it"
            session.show({"width": running.width, "queues": names}, [line])
            sys.stdout.flush()
        with ended_by_signals(running):
            running.run()
        if once:
            session.show({"width": running.width, "queues": names}, ["no job waits"])


@contextmanager
def ended_by_signals(running: Worker, numbers: Sequence[int] = (signal.SIGTERM, signal.SIGINT)) -> Iterator[None]:
    """Let signals end a worker in good order, within the block."""

    def end(number: int, frame: FrameType | None) -> None:
        running.stop()

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
