"""A job as it stands: what was asked for, by whom, how far it is, and what came of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

WAITING, RUNNING, SUCCEEDED, FAILED, CANCELLED = "waiting", "running", "succeeded", "failed", "cancelled"
STATUSES: Final = (WAITING, RUNNING, SUCCEEDED, FAILED, CANCELLED)
ENDED: Final = (SUCCEEDED, FAILED, CANCELLED)

STATUS_OF: Final[Mapping[str, str]] = {
    "todo": WAITING,
    "doing": RUNNING,
    "succeeded": SUCCEEDED,
    "failed": FAILED,
    "cancelled": CANCELLED,
    "aborting": RUNNING,
    "aborted": CANCELLED,
}
"""Ours, by procrastinate's."""


@dataclass(frozen=True)
class Job:
    """A job.

    Args:
        id: its number.
        kind, options: what is to be done.
        added_by: who asked for it.
        principal: as whom it runs; None: as the workspace's owner.
        queue: which workers take it.
        status: one of `STATUSES`.
        key: one with this key that waits is enough.
        lock: one with this lock runs at a time.
        run_at: it is not started before; None: at once.
        added_at, started_at, ended_at: when; the last start, if it was tried several times.
        tries: how often it has ended or was given back.
        cancelling: whether it runs and was asked to end.
        worker: the process that runs it, or did.
        progress: by what it is doing, `{"done", "total", "unit"}` of each.
        result: what came of it.
        error: why it failed, as errors are printed; while it waits, why it is tried again.
    """

    id: int
    kind: str
    options: Mapping[str, Any]
    added_by: str
    principal: str | None
    queue: str
    status: str
    key: str | None
    lock: str | None
    run_at: datetime | None
    added_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    tries: int
    cancelling: bool
    worker: str | None
    progress: Mapping[str, Any]
    result: Mapping[str, Any] | None
    error: Mapping[str, Any] | None

    @property
    def ended(self) -> bool:
        """Whether nothing more will become of it."""
        return self.status in ENDED

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


@dataclass(frozen=True)
class LogLine:
    """A line of a job's log. Its `id` counts up, so that whoever has one can ask for those after it."""

    id: int
    at: datetime
    level: str
    line: str

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))
