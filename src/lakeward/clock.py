"""Time, identifiers and faults as ports, so that tests can inject them.

Only waiting and display use this clock. Whatever decides something (leases, `committed_at`) uses the database's clock.
"""

from __future__ import annotations

import time
import uuid
from typing import Protocol


class Clock(Protocol):
    """A source of monotonic seconds, and a way to let them pass."""

    def monotonic(self) -> float:
        """Return seconds from an arbitrary origin; never goes back."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait for `seconds`."""
        ...


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        """Return `time.monotonic()`."""
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        """Call `time.sleep`."""
        time.sleep(seconds)


class Ids(Protocol):
    """A source of identifiers for builds and files."""

    def new(self) -> uuid.UUID:
        """Return an identifier that was never returned before."""
        ...


class RandomIds:
    """Random version-4 UUIDs."""

    def new(self) -> uuid.UUID:
        """Return `uuid.uuid4()`."""
        return uuid.uuid4()


class Faults(Protocol):
    """Called at every named step of the protocol; a test kills, stalls or raises there."""

    def at(self, step: str) -> None:
        """Return, or don't."""
        ...


class NoFaults:
    """What production uses: nothing happens."""

    def at(self, step: str) -> None:
        """Return at once."""
