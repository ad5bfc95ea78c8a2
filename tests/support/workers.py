"""Workers as processes of their own, forked by `support.crashes.Driver`; and where they find the kinds of tests."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

from lakeward.cli.commands.worker import ended_by_signals
from lakeward.jobs import kinds
from lakeward.jobs.worker import Worker
from lakeward.testing import crash_at
from lakeward.wiring.workspace import Workspace

KINDS = str(Path(__file__).parents[1] / "jobs" / "kinds")


def find_kinds() -> None:
    """Let discovery find the kinds of tests: adding a kind is adding a file."""
    if KINDS not in kinds.__path__:
        kinds.__path__.append(KINDS)


def work(workspace: Workspace, step: str = "never", once: bool = True, width: int = 2) -> dict[str, Any]:
    """Run jobs; be killed at a step."""
    find_kinds()
    worker = Worker(workspace, once=once, width=width, faults=crash_at(step))
    with ended_by_signals(worker, (signal.SIGTERM,)):
        worker.run()
    return {"begun": worker.begun}
