"""Keeps what a job tells in Postgres, where every process can see it: how far it is, and its log.

A build tells of every batch of rows. What is told is kept a few times a second at most; the first of it, and all that
is left at the end, at once. What can't be kept is lost, and the job goes on.
"""

from __future__ import annotations

import json
import logging
import threading
import uuid
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from lakeward.clock import Clock
from lakeward.control.db import Database, Queries
from lakeward.errors import LakewardError

QUERIES = Queries.beside(__file__)

EVERY_SECONDS = 0.4
"""How often what is told is kept."""

MOST_LINES = 2000
"""A job's log has so many lines at most, and then says so."""

LONGEST_LINE = 4000

NAMESPACE = uuid.UUID("6f4b2a9e-5a2f-4a53-9a0e-1d6a6d1f7c10")
"""Under which the tries of jobs have their ids."""

log = logging.getLogger("lakeward.jobs")


class Telling:
    """What a running job is told to, in any of its threads.

    Args:
        database: of the workspace.
        job_id: whose.
        attempt: how often it was tried before.
        owner: the process that runs it, as JSON.
        clock: tells when to keep.
    """

    def __init__(self, database: Database, job_id: int, attempt: int, owner: str, clock: Clock) -> None:
        self._database = database
        self.job_id = job_id
        self._attempt = attempt
        self._owner = owner
        self._clock = clock
        self._lock = threading.Lock()
        self._keeping = threading.Lock()
        self._progress: dict[str, dict[str, Any]] = {}
        self._lines: list[tuple[datetime, str, str]] = []
        self._written = 0
        self._changed = False
        self._kept_at: float | None = None
        self._later: threading.Timer | None = None

    def progress(self, what: str, done: int, total: int | None = None, unit: str = "rows") -> None:
        """See `kind.Tell`."""
        with self._lock:
            self._progress[what] = {"done": done, "total": total, "unit": unit}
            self._changed = True
        self._keep()

    def line(self, text: str, level: str = "info") -> None:
        """See `kind.Tell`."""
        with self._lock:
            self._written += 1
            if self._written > MOST_LINES + 1:
                return
            if self._written > MOST_LINES:
                level, text = "warning", f"more than {MOST_LINES} lines: the others are not kept"
            # Postgres takes no NUL.
            self._lines.append((datetime.now(UTC), level, text.replace("\0", "␀")[:LONGEST_LINE]))
        self._keep()

    def tries(self, what: str) -> list[uuid.UUID]:
        """See `kind.Tell`."""
        return [uuid.uuid5(NAMESPACE, f"{self.job_id} {number} {what}") for number in range(self._attempt + 1)]

    def _keep(self, *, all_of_it: bool = False) -> None:
        now = self._clock.monotonic()
        with self._lock:
            if not (self._changed or self._lines):
                return
            if not all_of_it and self._kept_at is not None and now - self._kept_at < EVERY_SECONDS:
                # It may be the last thing that is told for long.
                if self._later is None:
                    self._later = threading.Timer(EVERY_SECONDS, self._keep, kwargs={"all_of_it": True})
                    self._later.daemon = True
                    self._later.start()
                return
            self._kept_at = now
            later, self._later = self._later, None
        if later is not None:
            later.cancel()
        with self._keeping:
            with self._lock:
                lines, self._lines = self._lines, []
                progress, self._changed = json.dumps(self._progress) if self._changed else None, False
            try:
                self._write(lines, progress)
            except LakewardError as error:
                log.warning("what job %s told was not kept: %s", self.job_id, error)

    def _write(self, lines: list[tuple[datetime, str, str]], progress: str | None) -> None:
        if progress is not None:
            self._database.fetch(QUERIES["tell"], {"id": self.job_id, "progress": progress, "owner": self._owner})
        if lines:
            ats, levels, texts = (list(each) for each in zip(*lines, strict=True))
            self._database.fetch(QUERIES["lines"], {"id": self.job_id, "ats": ats, "levels": levels, "lines": texts})

    def __enter__(self) -> Telling:
        self._token = _current.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)
        self._keep(all_of_it=True)


_current: ContextVar[Telling | None] = ContextVar("lakeward_job", default=None)


class JobLog(logging.Handler):
    """Writes what is logged within a job to the job's own log, too."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, if a job's thread has logged it."""
        telling = _current.get()
        if telling is not None and record.name != log.name:
            telling.line(record.getMessage(), record.levelname.lower())
