"""Iceberg `replace` against PyArrow writing the same batches to one Parquet file; and its memory at more rows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow.parquet as pq
from measure import in_fresh_process, table, timed
from rows import ARROW, COLUMNS, million, repeated

import lakeward


def case(millions: int, with_reference: bool) -> dict[str, object]:
    """Replace a dataset by so many million rows, as its first write and again; best of the two."""
    batches = million()
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        orders = workspace.create_dataset("bench.main.orders", COLUMNS, arm="iceberg")
        orders.write(repeated(batches[:1], 1), mode="replace")
        references, ours = [], []
        for _ in range(3 if with_reference else 1):
            if with_reference:
                references.append(timed(lambda: _reference(Path(scratch) / "reference.parquet", batches, millions)))
            ours.append(timed(lambda: orders.write(repeated(batches, millions), mode="replace")))
        assert orders.row_count == millions * 1_000_000
    best = min(run.seconds for run in ours)
    reference = min((run.seconds for run in references), default=None)
    return {
        "rows": f"{millions}M",
        "PyArrow s": reference if reference is not None else "–",
        "Lakeward s": best,
        "ratio (≤ 1.3)": best / reference if reference else "–",
        "peak MB (≤ 350)": max(run.peak_mb for run in ours),
    }


def _reference(path: Path, batches: list[object], millions: int) -> None:
    with pq.ParquetWriter(path, ARROW, compression="zstd") as writer:
        for each in repeated(batches, millions):
            writer.write_batch(each)
    path.unlink()


def main() -> str:
    """Run every case and return the table."""
    cases = [(1, True), (5, True), (25, False)]
    return table("Iceberg `replace`, 10 columns", [in_fresh_process(case, *each) for each in cases])


if __name__ == "__main__":
    print(main())
