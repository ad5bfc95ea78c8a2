"""Overlaps the making of batches with their use: a thread makes the next ones while the caller uses the last."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, TypeVar

from lakeward.access.guard import carried

Item = TypeVar("Item")

AHEAD_BYTES = 64 << 20
"""Items that are made ahead have so many bytes together, at most; a larger one is made ahead alone."""


@contextmanager
def prefetched(
    items: Iterable[Item], depth: int = 2, size: Callable[[Item], int] | None = None
) -> Iterator[Iterator[Item]]:
    """Iterate over `items` from a thread of its own, at most `depth` ahead.

    What the iteration raises is raised to the caller in its place. Leaving the block early stops the thread; memory is
    bounded by `depth + 2` items.

    Args:
        items: is iterated over by the thread alone.
        depth: so many items wait for the caller, at most.
        size: the bytes of an item, where `depth` of them may be too much: then fewer wait, see `AHEAD_BYTES`.
    """
    line: _Line[Item] = _Line(depth, size or (lambda _: 0))

    def run() -> None:
        try:
            for item in items:
                if not line.put(item):
                    return
        finally:
            line.end()

    def drain() -> Iterator[Item]:
        while (taken := line.take()) is not None:
            yield taken[0]
        running.result()

    with ThreadPoolExecutor(1, thread_name_prefix="lakeward-prefetch") as pool:
        running = pool.submit(carried(run))
        try:
            yield drain()
        finally:
            line.stop()


class _Line(Generic[Item]):
    """Items that wait, between the one thread that makes them and the one that takes them."""

    def __init__(self, depth: int, size: Callable[[Item], int]) -> None:
        self._depth = depth
        self._size = size
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Item, int]] = deque()
        self._bytes = 0
        self._ended = False
        self._stopped = False

    def put(self, item: Item) -> bool:
        """Add an item as soon as there is room; False: nobody wants it any more."""
        size = self._size(item)
        with self._changed:
            self._changed.wait_for(lambda: self._stopped or self._room(size))
            if self._stopped:
                return False
            self._waiting.append((item, size))
            self._bytes += size
            self._changed.notify_all()
            return True

    def _room(self, size: int) -> bool:
        if not self._waiting:
            return True
        return len(self._waiting) < self._depth and self._bytes + size <= AHEAD_BYTES

    def take(self) -> tuple[Item] | None:
        """Return the next item as soon as it is there; None: there is none."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._ended)
            if not self._waiting:
                return None
            item, size = self._waiting.popleft()
            self._bytes -= size
            self._changed.notify_all()
            return (item,)

    def end(self) -> None:
        """Say that no item comes any more."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def stop(self) -> None:
        """Say that no item is wanted any more."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
