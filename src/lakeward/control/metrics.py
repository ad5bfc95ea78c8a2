"""Counters of this process: what was read where, and what did not go as it was to."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

Series = tuple[int, str]
"""The id of the dataset that something was counted of, 0 for none, and its name, labels included."""


class Metrics:
    """Counts by name. Safe to use from several threads.

    A name is written as Prometheus writes it, labels included: `lakeward_reads_total{arm="iceberg",reader="api.read"}`.

    Args:
        begun: is called when there is something new to `take`, and was not before.

    Example:
        >>> metrics = Metrics()
        >>> metrics.add("lakeward_reads_total", arm="iceberg", reader="api.read")
        >>> metrics.values()
        {'lakeward_reads_total{arm="iceberg",reader="api.read"}': 1}
    """

    def __init__(self, begun: Callable[[], None] = lambda: None) -> None:
        self._begun = begun
        self._lock = threading.Lock()
        self._values: dict[str, int] = {}
        self._fresh: dict[Series, int] = {}

    def add(self, name: str, by: int = 1, *, dataset: int = 0, **labels: str) -> None:
        """Count `by` more of something.

        Args:
            name: what.
            by: how many.
            dataset: the id of the dataset that it was; 0: of none.
            labels: see the class.
        """
        if labels:
            name += "{" + ",".join(f'{label}="{value}"' for label, value in sorted(labels.items())) + "}"
        with self._lock:
            first = not self._fresh
            self._values[name] = self._values.get(name, 0) + by
            self._fresh[dataset, name] = self._fresh.get((dataset, name), 0) + by
        if first:
            self._begun()

    def values(self) -> dict[str, int]:
        """Return every counter that ever counted, by name."""
        with self._lock:
            return dict(sorted(self._values.items()))

    def take(self) -> dict[Series, int]:
        """Return what was counted since it was taken the last time."""
        with self._lock:
            taken, self._fresh = self._fresh, {}
        return taken

    def give_back(self, taken: Mapping[Series, int]) -> None:
        """Let what was taken be taken once more."""
        with self._lock:
            for series, value in taken.items():
                self._fresh[series] = self._fresh.get(series, 0) + value
