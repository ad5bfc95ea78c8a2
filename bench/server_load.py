"""The server under load: 50 readers and 10 writers for a minute, how long requests took, and memory meanwhile."""

from __future__ import annotations

import statistics
import tempfile
from pathlib import Path

import pyarrow as pa
from measure import table

import lakeward
from lakeward.testing.server_load import COLUMNS, load

READERS, WRITERS, SECONDS = 50, 10, 60.0
ROWS = 10_000


def main() -> str:
    """Run the benchmark and return its table; a request that fails, or rows that are lost, end it."""
    names = {arm: f"bench.load.on_{arm}" for arm in ("postgres", "iceberg")}
    rows = pa.table({"id": range(ROWS), "note": ["n"] * ROWS, "amount": pa.nulls(ROWS, pa.decimal128(18, 4))})
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        for arm, name in names.items():
            workspace.create_dataset(name, COLUMNS, arm=arm).write(rows)
        found = load(Path(scratch) / "home", list(names.values()), READERS, WRITERS, SECONDS)
        for name in names.values():
            assert workspace.dataset(name).row_count == ROWS + found.written[name], name
    lines: list[dict[str, object]] = []
    for kind, taken in sorted(found.seconds.items()):
        cuts = statistics.quantiles(taken, n=100, method="inclusive")
        times = {"p50 ms": cuts[49], "p95 ms": cuts[94], "p99 ms": cuts[98], "worst ms": max(taken)}
        lines.append({"request": kind, "of them": len(taken), **{name: at * 1000 for name, at in times.items()}})
    memory = f"server: {found.before_mb:.0f} MB before, {found.peak_mb:.0f} at most, {found.after_mb:.0f} after"
    return table(f"{READERS} readers and {WRITERS} writers of one server, {SECONDS:.0f} s", lines) + f"\n{memory}\n"


if __name__ == "__main__":
    print(main())
