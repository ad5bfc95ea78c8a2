"""A long history: many small appends to an Iceberg dataset, many replaces of Postgres rows; does the last cost more?"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measure import in_fresh_process, table
from rows import COLUMNS, batch

import lakeward

APPENDS = 1000
REPLACES = 100
COMPARED = 100
LIMIT = 2.0


def appends() -> dict[str, object]:
    """Append one row so often, and compare the first with the last."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        dataset = workspace.create_dataset("bench.main.appends", COLUMNS, arm="iceberg")
        dataset.write(batch(0, 1))
        milliseconds = [_milliseconds(partial(dataset.write, batch(number, 1))) for number in range(1, APPENDS + 1)]
        files = [path for path in (Path(scratch) / "home" / "warehouse").rglob("*") if path.is_file()]
        held = sum(path.suffix != ".parquet" for path in files)
        assert dataset.to_arrow(columns=["id"]).num_rows == APPENDS + 1
    first, last = statistics.median(milliseconds[:COMPARED]), statistics.median(milliseconds[-COMPARED:])
    return {
        "what": f"{APPENDS} appends of 1 row, Iceberg",
        f"first {COMPARED}, p50 ms": first,
        f"last {COMPARED}, p50 ms": last,
        "ratio": last / first,
        "limit": LIMIT,
        "metadata files": held,
    }


def replaces() -> dict[str, object]:
    """Replace all rows so often, and compare reads of the head."""
    rows = 10_000
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        dataset = workspace.create_dataset("bench.main.replaces", COLUMNS)
        dataset.write(batch(0, rows), mode="replace")
        first = statistics.median(_milliseconds(dataset.to_arrow) for _ in range(9))
        for _ in range(REPLACES):
            dataset.write(batch(0, rows), mode="replace")
        last = statistics.median(_milliseconds(dataset.to_arrow) for _ in range(9))
    return {
        "what": f"read of {rows} rows before and after {REPLACES} replaces, Postgres",
        f"first {COMPARED}, p50 ms": first,
        f"last {COMPARED}, p50 ms": last,
        "ratio": last / first,
        "limit": LIMIT,
        "metadata files": 0,
    }


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def main() -> str:
    """Run both and return the table."""
    return table("A long history", [in_fresh_process(appends), in_fresh_process(replaces)])


if __name__ == "__main__":
    print(main())
