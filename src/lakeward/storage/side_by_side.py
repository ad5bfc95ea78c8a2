"""Works on several things of one piece of work at a time; the first that fails ends the others."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from typing import Generic, Protocol, TypeVar

from lakeward.errors import Stopped


class Thing(Protocol):
    """What is worked on."""

    def give_up(self) -> None:
        """Let the work on it end soon; called by another thread than that which works."""


Kind = TypeVar("Kind", bound=Thing)

AGAIN_SECONDS = 0.5
"""How often those that are still at work are told to end."""


class SideBySide(Generic[Kind]):
    """Whether one of them failed.

    Args:
        width: how many are worked on at a time, each in a thread; 1: one after the other, in this thread.
    """

    def __init__(self, width: int) -> None:
        self._width = width
        self._failed = threading.Event()
        self._first: BaseException | None = None

    def check(self) -> None:
        """Raise if another one has failed: what this one does is for nothing.

        Raises:
            Stopped: one has.
        """
        if self._failed.is_set():
            raise Stopped("another output of the build failed", safe="nothing that was not committed is visible")

    def run(self, things: Sequence[Kind], work: Callable[[Kind], None]) -> None:
        """Do the work on each, and return when no thread is at it any more; raises what the first that failed raised.

        Those that are not begun then never are; those that are get asked to give up, and see `check`.
        """
        if self._width == 1 or len(things) == 1:
            for thing in things:
                work(thing)
            return
        with ThreadPoolExecutor(min(self._width, len(things)), thread_name_prefix="lakeward-output") as pool:
            # What this thread's work hears, the threads' work has to hear, too: see `lakeward.stopping`.
            begun = [pool.submit(contextvars.copy_context().run, self._one, work, thing) for thing in things]
            try:
                wait(begun, return_when=FIRST_EXCEPTION)
            finally:
                if not all(each.done() for each in begun):
                    self._end(things, begun)
        if self._first is not None:
            raise self._first

    def _one(self, work: Callable[[Kind], None], thing: Kind) -> None:
        self.check()
        try:
            work(thing)
        except BaseException as error:
            if not self._failed.is_set():
                self._first = error
                self._failed.set()
            raise

    def _end(self, things: Sequence[Kind], begun: Sequence[Future[None]]) -> None:
        self._failed.set()
        for each in begun:
            each.cancel()
        # Again and again: one that was about to ask a server for its rows has not heard it.
        while at_work := [(thing, each) for thing, each in zip(things, begun, strict=True) if not each.done()]:
            for thing, _ in at_work:
                thing.give_up()
            wait([each for _, each in at_work], timeout=AGAIN_SECONDS)
