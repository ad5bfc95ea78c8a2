"""Real implementations of the ports for tests, ours and yours: an arm in memory, a moved clock, crashes on demand."""

from __future__ import annotations

from lakeward.testing.fake_clock import FakeClock
from lakeward.testing.faults import AtStep, crash_at, pause_at, raise_at
from lakeward.testing.in_memory_arm import InMemoryArm

__all__ = ["AtStep", "FakeClock", "InMemoryArm", "crash_at", "pause_at", "raise_at"]
