"""The server under load: 50 readers and 10 writers for a minute, how long requests took, and memory meanwhile."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

from measure import table

from lakeward.testing.server_load import load

READERS, WRITERS, SECONDS = 50, 10, 60.0


def main() -> str:
    """Run the benchmark and return its table; a request that fails, or rows that are lost, end it."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch:
        found = load(Path(scratch) / "home", READERS, WRITERS, SECONDS)
    lines: list[dict[str, object]] = []
    for kind, taken in sorted(found.seconds.items()):
        cuts = statistics.quantiles(taken, n=100, method="inclusive")
        times = {"p50 ms": cuts[49], "p95 ms": cuts[94], "p99 ms": cuts[98], "worst ms": max(taken)}
        lines.append({"request": kind, "of them": len(taken), **{name: at * 1000 for name, at in times.items()}})
    memory = f"server: {found.before_mb:.0f} MB before, {found.peak_mb:.0f} at most, {found.after_mb:.0f} after"
    return table(f"{READERS} readers and {WRITERS} writers of one server, {SECONDS:.0f} s", lines) + f"\n{memory}\n"


if __name__ == "__main__":
    print(main())
