"""An object store on loopback: writes and reads by Lakeward against PyArrow's own, on the same bytes of the same store.

Needs `weed`, which `make setup` installs for tests. CPU is this process's, so a store that is slow or a machine that is
shared counts in the seconds only.
"""

from __future__ import annotations

import resource
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from measure import in_fresh_process, table, timed
from pyarrow import fs
from rows import ARROW, COLUMNS, million, repeated

import lakeward

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from support.seaweedfs import BUCKET, SeaweedFS, running

TURNS = 3


@dataclass(frozen=True)
class Cost:
    """The least CPU and wall seconds of some turns, and the highest peak of memory."""

    cpu: float
    seconds: float
    peak_mb: float


def cost(work: Callable[[], object]) -> Cost:
    """Measure some turns of a piece of work."""
    turns = []
    for _ in range(TURNS):
        before = _cpu()
        run = timed(work)
        turns.append(Cost(_cpu() - before, run.seconds, run.peak_mb))
    least = (min(turn.cpu for turn in turns), min(turn.seconds for turn in turns))
    return Cost(*least, max(turn.peak_mb for turn in turns))


def case(endpoint: str, millions: int) -> list[dict[str, object]]:
    """Write and read so many million rows."""
    store = SeaweedFS(endpoint, "")
    files, batches = store.files(), million()
    path = f"{BUCKET}/reference/{millions}.parquet"
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch:
        house = f"s3://{BUCKET}/house{millions}"
        with lakeward.open(Path(scratch) / "home", warehouse=house, catalog=store.properties()) as workspace:
            orders = workspace.create_dataset("bench.main.orders", COLUMNS, ["id"], arm="iceberg")
            tenth = pa.Table.from_batches(batches).slice(0, 100_000)
            _reference(files, path, batches, millions)
            data = ds.dataset(path, filesystem=files, format="parquet")
            pairs = {
                "replace": (
                    lambda: orders.write(repeated(batches, millions), mode="replace"),
                    lambda: _reference(files, path, batches, millions),
                ),
                "read": (lambda: _drain(orders.read()), lambda: _drain(data.scanner().to_reader())),
                "read of one column": (
                    lambda: _drain(orders.read(columns=["amount"])),
                    lambda: _drain(data.scanner(columns=["amount"]).to_reader()),
                ),
            }
            rows = []
            for what, (ours, reference) in pairs.items():
                by_arrow, by_us = cost(reference), cost(ours)
                rows.append(_row(f"{millions}M", what, by_us, by_arrow))
            orders.write(repeated(batches, 1), mode="replace")
            rows.append(_row("1M", "upsert of 100,000", cost(lambda: orders.write(tenth, mode="upsert")), None))
            return rows


def _row(rows: str, what: str, ours: Cost, reference: Cost | None) -> dict[str, object]:
    return {
        "rows": rows,
        "what": what,
        "PyArrow s": reference.seconds if reference else "–",
        "Lakeward s": ours.seconds,
        "PyArrow CPU s": reference.cpu if reference else "–",
        "Lakeward CPU s": ours.cpu,
        "peak MB": ours.peak_mb,
    }


def _reference(files: fs.FileSystem, path: str, batches: list[pa.RecordBatch], millions: int) -> None:
    with files.open_output_stream(path) as stream, pq.ParquetWriter(stream, ARROW, compression="zstd") as writer:
        for each in repeated(batches, millions):
            writer.write_batch(each)


def _drain(reader: pa.RecordBatchReader) -> None:
    for _ in reader:
        pass


def _cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> str:
    """Run every case and return the table."""
    with tempfile.TemporaryDirectory(prefix="lw-") as directory, running(Path(directory)) as store:
        rows = [row for millions in (1, 5) for row in in_fresh_process(case, store.endpoint, millions)]
    return table("An object store, 10 columns", rows)


if __name__ == "__main__":
    print(main())
