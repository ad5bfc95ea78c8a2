"""How many streams of rows are open, and how long one waits: each holds a connection, in a transaction, and rows."""

from __future__ import annotations

import threading

from lakeward.errors import Busy
from lakeward.server.memory import Memory

MOST = 100
"""So many are open at a time; who comes then is told to come again."""

STALL_SECONDS = 300.0
"""So long may a client take for one part of a stream; then it is broken off."""


class OpenStreams:
    """Counts them, from any thread.

    Args:
        most: so many may be open at a time.
        stall_seconds: so long may a client take for one part of a stream.

    Example:
        >>> streams = OpenStreams(most=1)
        >>> streams.check()
        >>> streams.begin()
        >>> streams.open
        1
        >>> streams.end()
    """

    def __init__(self, most: int = MOST, stall_seconds: float = STALL_SECONDS) -> None:
        self.most = most
        self.stall_seconds = stall_seconds
        self.open = 0
        self.memory = Memory()
        self._lock = threading.Lock()

    def check(self) -> None:
        """Ask whether one more may be opened, before anything is; of several that ask at once, all may.

        Raises:
            Busy: so many are open as may be.
        """
        if self.open >= self.most:
            raise Busy(
                f"{self.most} streams of rows are open, as many as may be at a time",
                safe="nothing was read",
                next_step="ask again in a moment; the setting server.streams says how many there may be",
                most=self.most,
            )

    def begin(self) -> None:
        """Count one that is opened."""
        with self._lock:
            self.open += 1

    def end(self) -> None:
        """Count one that is closed."""
        with self._lock:
            self.open -= 1
