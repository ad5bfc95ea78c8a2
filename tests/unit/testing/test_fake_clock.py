"""The moved clock: time passes by sleeping and by hand, and never for real."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from lakeward.clock import Clock
from lakeward.testing import FakeClock


def test_sleeping_takes_no_time_and_moves_it() -> None:
    clock: Clock = FakeClock(start=10)
    started = time.monotonic()
    clock.sleep(3600)
    assert clock.monotonic() == 3610
    assert time.monotonic() - started < 1


def test_what_was_slept_is_told_and_advancing_is_not_sleeping() -> None:
    clock = FakeClock()
    clock.sleep(1)
    clock.advance(5)
    clock.sleep(2)
    assert (clock.slept, clock.monotonic()) == ([1, 2], 8)


def test_threads_share_it() -> None:
    clock = FakeClock()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(clock.sleep, [0.5] * 200))
    assert clock.monotonic() == 100
