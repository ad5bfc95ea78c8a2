"""Reading what changed: 1 % of a dataset since a version, against a full scan of it, on both arms."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
from measure import Measured, in_fresh_process, table, timed
from rows import ARROW, BATCH_ROWS, COLUMNS, batch

import lakeward
from lakeward.storage.arm import NEW, OLD, scanned
from lakeward.storage.changes import Wanted, compared
from lakeward.storage.table import table_ref

ROWS = {"iceberg": 5_000_000, "postgres": 1_000_000}
SHARE = 100
LIMIT = 0.05
TURNS = 3


def case(arm: str, rows: int) -> dict[str, object]:
    """Write a dataset, append 1 % and then update 1 % here and there, and read what that was."""
    part = rows // SHARE
    with (
        tempfile.TemporaryDirectory(prefix="lw-", dir=os.environ.get("BENCH_DIR")) as scratch,
        lakeward.open(Path(scratch) / "home") as workspace,
    ):
        dataset = workspace.create_dataset("bench.main.delta", COLUMNS, ["id"], arm=arm)
        dataset.write(_stream(0, rows))
        dataset.write(_stream(rows, part))
        scan = _best(dataset.read)
        since = _best(lambda: dataset.read(since=1), part)
        appended = _best(lambda: dataset.changes(since=1), part)
        spread = np.random.default_rng(7).choice(rows, part, replace=False)
        dataset.write(_changed(spread), mode="upsert")
        updated_since = _best(lambda: dataset.read(since=2), part)
        images = _best(lambda: dataset.changes(since=2), 2 * part)
        fed = _best(lambda: dataset.changes(since=2, before=False), part)
        whole = timed(lambda: _consume(_full_comparison(workspace, dataset)))
    ratio = since.seconds / scan.seconds
    return {
        "arm": arm,
        "rows": f"{rows:,}",
        "full scan s": scan.seconds,
        "since, appended s": since.seconds,
        "of a scan": f"{ratio:.1%}",
        "limit": f"{LIMIT:.0%}",
        "changes, appended s": appended.seconds,
        "since, updated s": updated_since.seconds,
        "changes, updated s": images.seconds,
        "without before s": fed.seconds,
        "peak MB": images.peak_mb,
        "compared in full s": whole.seconds,
        "its peak MB": whole.peak_mb,
    }


def _stream(start: int, rows: int) -> pa.RecordBatchReader:
    starts = range(start, start + rows, BATCH_ROWS)
    batches = (batch(first, min(BATCH_ROWS, start + rows - first)) for first in starts)
    return pa.RecordBatchReader.from_batches(ARROW, batches)


def _changed(ids: np.ndarray[tuple[int], np.dtype[np.int64]]) -> pa.Table:
    made = pa.Table.from_batches([batch(0, len(ids), seed=11)])
    return made.set_column(0, "id", pa.array(ids))


def _full_comparison(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> pa.RecordBatchReader:
    """Return the same as `changes`, as an arm without a way of its own tells it."""
    ref, routing = table_ref(dataset.record), workspace.storage.routing
    old, new = routing.resolve_pair(dataset.record, None, 2, 3)
    sides = scanned(old.arm, ref, old.version, OLD), scanned(new.arm, ref, new.version, NEW)
    return compared(workspace.storage._duck, ref, sides, Wanted(ref.schema.names), lambda: None)


def _consume(reader: pa.RecordBatchReader) -> int:
    return sum(each.num_rows for each in reader)


def _best(opened: Callable[[], pa.RecordBatchReader], rows: int | None = None) -> Measured:
    """Return the fastest of some turns, each of which reads everything."""
    found: list[Measured] = []
    for _ in range(TURNS):
        read: list[int] = []
        found.append(timed(lambda read=read: read.append(_consume(opened()))))
        assert rows is None or read == [rows], f"{read} rows instead of {rows}"
    return min(found, key=lambda each: each.seconds)


def main(rows: int | None = None) -> str:
    """Run it on both arms, with so many rows if a number is given, and return the table."""
    return table("What changed", [in_fresh_process(case, arm, rows or usual) for arm, usual in ROWS.items()])


if __name__ == "__main__":
    print(main(*map(int, sys.argv[1:])))
