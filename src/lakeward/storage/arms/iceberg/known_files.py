"""Remembers which data files a snapshot has: that never changes, and to read it from manifests costs each reader."""

from __future__ import annotations

import threading
import uuid
from collections import OrderedDict
from collections.abc import Callable, Sequence

from pyiceberg.table import FileScanTask

MOST_FILES = 20_000
"""So many data files are remembered, in all snapshots together; those that were asked for longest ago are forgotten."""

Key = tuple[uuid.UUID, int]
"""A table and one of its snapshots."""


class KnownFiles:
    """The data files of snapshots, with the delete files that apply to them. Safe to share between threads.

    Args:
        most: how many data files are remembered.
    """

    def __init__(self, most: int = MOST_FILES) -> None:
        self._most = most
        self._files: OrderedDict[Key, tuple[FileScanTask, ...]] = OrderedDict()
        self._count = 0
        self._lock = threading.Lock()

    def of(self, key: Key, plan: Callable[[], Sequence[FileScanTask]]) -> tuple[FileScanTask, ...]:
        """Return the files of a snapshot.

        Args:
            key: which one.
            plan: reads them from the manifests; two threads that ask at once may both do it.
        """
        with self._lock:
            if key in self._files:
                self._files.move_to_end(key)
                return self._files[key]
        found = tuple(plan())
        with self._lock:
            if key not in self._files and len(found) <= self._most:
                self._files[key] = found
                self._count += len(found)
            while self._count > self._most:
                self._count -= len(self._files.popitem(last=False)[1])
        return found
