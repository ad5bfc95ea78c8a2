"""Faults on demand, each in a process of its own where it ends one."""

from __future__ import annotations

import os
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from lakeward.clock import Faults
from lakeward.testing import AtStep, crash_at, pause_at, raise_at


def forked(faults: Faults, *steps: str) -> int:
    """Pass the steps in a child that ends with 7 if it lives, and return its pid."""
    pid = os.fork()
    if pid == 0:
        for step in steps:
            faults.at(step)
        os._exit(7)
    return pid


def test_crash_at_kills_at_the_step() -> None:
    _, status = os.waitpid(forked(crash_at("b"), "a", "b"), 0)
    assert os.WIFSIGNALED(status)
    assert os.WTERMSIG(status) == signal.SIGKILL
    _, status = os.waitpid(forked(crash_at("b"), "a", "c"), 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_pause_at_stops_until_it_is_told_to_go_on() -> None:
    pid = forked(pause_at("b"), "a", "b")
    _, status = os.waitpid(pid, os.WUNTRACED)
    assert os.WIFSTOPPED(status)
    os.kill(pid, signal.SIGCONT)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 7


def test_raise_at_raises_at_that_occurrence_only() -> None:
    error = ZeroDivisionError("here")
    faults = raise_at("b", error, occurrence=2)
    faults.at("b")
    with pytest.raises(ZeroDivisionError) as caught:
        faults.at("b")
    assert caught.value is error
    faults.at("b")
    assert faults.seen == ["b", "b", "b"]


def test_the_action_happens_once_whatever_thread_comes() -> None:
    done: list[int] = []
    faults = AtStep("b", lambda: done.append(1), occurrence=50)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(faults.at, ["b"] * 100))
    assert done == [1]
