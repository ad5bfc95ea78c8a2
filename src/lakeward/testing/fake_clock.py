"""A clock that a test moves: whoever sleeps on it moves it on at once, so that no test waits."""

from __future__ import annotations

import threading


class FakeClock:
    """Monotonic seconds that pass only by `sleep` and `advance`. Safe to use from several threads.

    It decides nothing in the product (leases and commits go by the database's clock), so moving it can't make a lease
    run out; give a workspace a short lease for that.

    Args:
        start: the first reading, in seconds.

    Example:
        >>> clock = FakeClock()
        >>> clock.sleep(2.5)
        >>> clock.monotonic(), clock.slept
        (2.5, [2.5])
    """

    def __init__(self, start: float = 0.0) -> None:
        self._lock = threading.Lock()
        self._now = start
        self.slept: list[float] = []
        """Every sleep that was asked for, in seconds, in order."""

    def monotonic(self) -> float:
        """Return the seconds that have passed so far."""
        with self._lock:
            return self._now

    def sleep(self, seconds: float) -> None:
        """Let `seconds` pass at once."""
        with self._lock:
            self.slept.append(seconds)
            self._now += seconds

    def advance(self, seconds: float) -> None:
        """Let `seconds` pass without anybody having slept."""
        with self._lock:
            self._now += seconds
