"""Gives memory back to the system: after many have read at a time, a process would keep what it once had."""

from __future__ import annotations

import asyncio
import ctypes
from typing import Final

SOON: Final = 2.0
"""So many seconds after a stream has ended; it takes some milliseconds, for all that have ended until then."""

_trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
"""Of glibc; other systems do without."""


class Memory:
    """What the allocator keeps of what has been freed. For the event loop."""

    def __init__(self) -> None:
        self._timer: asyncio.TimerHandle | None = None

    def freed(self) -> None:
        """Tell that much may have been freed just now."""
        if self._timer is None and _trim is not None:
            self._timer = asyncio.get_running_loop().call_later(SOON, self._give_back)

    def _give_back(self) -> None:
        self._timer = None
        if _trim is not None:
            # In a thread, of the loop's own: it waits for others that allocate.
            asyncio.get_running_loop().run_in_executor(None, _trim, 0)
