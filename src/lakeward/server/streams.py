"""How many streams of rows are open: each holds a connection, in a transaction, and what is read ahead for it."""

from __future__ import annotations

import threading

from lakeward.errors import Busy

MOST = 100
"""So many are open at a time; who comes then is told to come again."""


class OpenStreams:
    """Counts them, from any thread.

    Args:
        most: so many may be open at a time.

    Example:
        >>> streams = OpenStreams(most=1)
        >>> streams.check()
        >>> streams.begin()
        >>> streams.open
        1
        >>> streams.end()
    """

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.open = 0
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
