"""Stops work that other threads do: it is asked once, and heard wherever that work looks up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from lakeward.errors import Stopped


class Stop:
    """What the threads of one piece of work are asked by to end.

    Args:
        otherwise: says whether it was asked in another way, too; called by whoever looks up.
    """

    def __init__(self, otherwise: Callable[[], bool] = lambda: False) -> None:
        self._changed = threading.Condition()
        self._hearing = 0
        self._asked = False
        self._otherwise = otherwise

    @property
    def asked(self) -> bool:
        """Whether the work is to end."""
        return self._asked or self._otherwise()

    def ask(self) -> None:
        """Let whoever hears it end as soon as it can, and nobody begin; and wait until all have ended."""
        with self._changed:
            self._asked = True
            self._changed.wait_for(lambda: not self._hearing)

    def check(self) -> None:
        """Raise if the work is to end.

        Raises:
            Stopped: it is.
        """
        if self.asked:
            raise Stopped("the work was stopped", safe="nothing that was not committed is visible")

    @contextmanager
    def heard(self) -> Iterator[None]:
        """Let this thread's work hear it, for the length of a block.

        Raises:
            Stopped: it is not to begin.
        """
        with self._changed:
            self.check()
            self._hearing += 1
        before = _current.set(self)
        try:
            yield
        finally:
            _current.reset(before)
            with self._changed:
                self._hearing -= 1
                self._changed.notify_all()


def current() -> Stop | None:
    """Return what this thread's work hears, if anything can stop it."""
    return _current.get()


def check() -> None:
    """Raise if this thread's work is to end.

    Raises:
        Stopped: it is.
    """
    stop = current()
    if stop is not None:
        stop.check()


_current: ContextVar[Stop | None] = ContextVar("lakeward_stop", default=None)
