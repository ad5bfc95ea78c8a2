"""Waits for what another thread or process does."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


def until(condition: Callable[[], bool], seconds: float = 60) -> None:
    """Wait for something that another thread or process does."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not come to pass"
        threading.Event().wait(0.02)
