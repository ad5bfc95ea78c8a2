"""Overlaps the making of batches with their use: a thread makes the next ones while the caller uses the last."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")

_END = object()


@contextmanager
def prefetched(items: Iterable[Item], depth: int = 2) -> Iterator[Iterator[Item]]:
    """Iterate over `items` from a thread of its own, at most `depth` ahead.

    What the iteration raises is raised to the caller in its place. Leaving the block early stops the thread; memory is
    bounded by `depth + 2` items.
    """
    ready: queue.Queue[object] = queue.Queue(depth)
    stop = threading.Event()

    def put(item: object) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=0.1)
            except queue.Full:
                continue
            return True
        return False

    def run() -> None:
        try:
            for item in items:
                if not put(item):
                    return
        finally:
            put(_END)

    def drain() -> Iterator[Item]:
        while (item := ready.get()) is not _END:
            yield item  # type: ignore[misc]
        running.result()

    with ThreadPoolExecutor(1, thread_name_prefix="lakeward-prefetch") as pool:
        running = pool.submit(run)
        try:
            yield drain()
        finally:
            stop.set()
