"""Faults on demand: a process that is killed, stopped or fails at one named step of the write protocol.

The steps are those of `lakeward.storage.protocol.STEPS`, the points inside them (`prepare:chunk`, `decide:committed`
…), and recovery's `recover:discarded`. They are real: a killed process gets SIGKILL, a paused one SIGSTOP.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable


class AtStep:
    """Does something the n-th time that a step is reached, once; every other step passes.

    Args:
        step: which step or point.
        action: what to do there; it may raise.
        occurrence: at which time, from 1: a step comes once for each output, `prepare:chunk` once for each chunk.
    """

    def __init__(self, step: str, action: Callable[[], None], occurrence: int = 1) -> None:
        self._step = step
        self._action = action
        self._occurrence = occurrence
        self._lock = threading.Lock()
        self._count = 0
        self.seen: list[str] = []
        """Every step that was reached, in order."""

    def at(self, step: str) -> None:
        """Count the step, and act if it is the one."""
        with self._lock:
            self.seen.append(step)
            if step != self._step:
                return
            self._count += 1
            due = self._count == self._occurrence
        if due:
            self._action()


def crash_at(step: str, occurrence: int = 1) -> AtStep:
    """Kill this process with SIGKILL at a step: nothing is cleaned up, as in a power cut."""
    return AtStep(step, lambda: os.kill(os.getpid(), signal.SIGKILL), occurrence)


def pause_at(step: str, occurrence: int = 1) -> AtStep:
    """Stop this process with all its threads at a step, until somebody sends it SIGCONT."""
    return AtStep(step, lambda: os.kill(os.getpid(), signal.SIGSTOP), occurrence)


def raise_at(step: str, error: BaseException, occurrence: int = 1) -> AtStep:
    """Raise `error` at a step."""

    def fail() -> None:
        raise error

    return AtStep(step, fail, occurrence)
