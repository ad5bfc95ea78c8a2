"""Ends work that computes for too long, or that is to stop: interrupts the piece of it that runs."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lakeward.errors import TimeLimitExceeded
from lakeward.stopping import current

SETTING = "compute.time_limit_seconds"

_PRECISION = 0.05
"""Seconds between two looks at work whose time is up, and the least between two looks at any."""

_LONGEST = 0.2
"""The most between two looks."""


class TimeLimit:
    """How long a query or model may compute, in pieces: nothing counts between them, or while one waits for others.

    A piece is also interrupted if the work of the thread that made this is stopped. Threads other than the one that
    computes may wait at the same time. Close it when the work is done.

    Args:
        seconds: of all pieces together; None: no limit.
        interrupt: ends the piece that runs; called from another thread, and again until the piece has ended, since a
            call between two statements of the piece is forgotten by the second one.
        setting: what the limit is set by, for its error.
    """

    def __init__(self, seconds: float | None, interrupt: Callable[[], None], setting: str = SETTING) -> None:
        self._setting = setting
        self._seconds = math.inf if seconds is None else seconds
        self._stop = current()
        self._interrupt = interrupt
        self._spent = 0.0
        self._since: float | None = None
        self._running = self._waiting = 0
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._watcher: threading.Thread | None = None
        self._unlimited = seconds is None and self._stop is None
        self.expired = False
        """Whether a piece was interrupted."""

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block: a piece of the work."""
        if self._unlimited:
            yield
            return
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, name="lakeward-time-limit", daemon=True)
            self._watcher.start()
        self._switch(running=1)
        try:
            yield
        finally:
            self._switch(running=-1)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Don't count the time of a block, in which a piece waits for somebody else: for the rows of a source, say."""
        if self._unlimited:
            yield
            return
        self._switch(waiting=1)
        try:
            yield
        finally:
            self._switch(waiting=-1)

    def exceeded(self, what: str) -> TimeLimitExceeded:
        """Return the error of work that was interrupted; `what` it was begins its message."""
        return TimeLimitExceeded(
            f"{what} computed for longer than {self._seconds:g} s, its limit by {self._setting}, and was ended",
            safe="nothing was written",
            next_step=f"let it compute less, or raise the setting {self._setting}",
            limit_seconds=self._seconds,
            setting=self._setting,
        )

    def close(self) -> None:
        """Interrupt nothing any more. May be called again."""
        self._closed.set()

    def _switch(self, running: int = 0, waiting: int = 0) -> None:
        with self._lock:
            now = time.monotonic()
            self._spent = self._total(now)
            self._running += running
            self._waiting += waiting
            self._since = now if self._running and not self._waiting else None

    def _total(self, now: float) -> float:
        return self._spent + (now - self._since if self._since is not None else 0.0)

    def _watch(self) -> None:
        left = self._seconds
        while not self._closed.wait(min(max(left, _PRECISION), _LONGEST)):
            # The lock keeps the piece from ending meanwhile, so that nothing after it is interrupted.
            with self._lock:
                left = self._seconds - self._total(time.monotonic())
                if self._since is not None and (left <= 0 or (self._stop is not None and self._stop.asked)):
                    self.expired = left <= 0
                    self._interrupt()
