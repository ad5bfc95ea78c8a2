"""Counters of this process: what was read where, and what comparisons of the arms found."""

from __future__ import annotations

import threading


class Metrics:
    """Counts by name. Safe to use from several threads.

    A name is written as Prometheus writes it, labels included: `lakeward_reads_total{arm="iceberg",reader="api.read"}`.

    Example:
        >>> metrics = Metrics()
        >>> metrics.add("lakeward_reads_total", arm="iceberg", reader="api.read")
        >>> metrics.values()
        {'lakeward_reads_total{arm="iceberg",reader="api.read"}': 1}
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[str, int] = {}

    def add(self, name: str, by: int = 1, **labels: str) -> None:
        """Count `by` more of something."""
        if labels:
            name += "{" + ",".join(f'{label}="{value}"' for label, value in sorted(labels.items())) + "}"
        with self._lock:
            self._values[name] = self._values.get(name, 0) + by

    def values(self) -> dict[str, int]:
        """Return every counter that ever counted, by name."""
        with self._lock:
            return dict(sorted(self._values.items()))
