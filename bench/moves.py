"""Moves of Iceberg tables: what one costs by the number of rows, and two hundred in one sweep.

BENCH_ROWS=2000000     rows of the large table; 10,000,000 if it is not set
"""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from measure import in_fresh_process, table
from rows import COLUMNS, batch, million, repeated

import lakeward
from lakeward.control.identifiers import home
from lakeward.control.moves import Relocation

ROWS = int(os.environ.get("BENCH_ROWS", "10000000"))
FEW = 1000
TURNS = 25
TABLES = 200
RATIO, MILLISECONDS = 1.2, 150.0

LEGACY = "[iceberg]\nborn_in_place = false\n"


@contextmanager
def opened() -> Iterator[lakeward.Workspace]:
    """Open a workspace whose tables are made in the legacy namespace."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch:
        settings = Path(scratch) / "lakeward.toml"
        settings.write_text(LEGACY, encoding="utf-8")
        with lakeward.open(Path(scratch) / "home", settings_file=settings) as workspace:
            yield workspace


def by_rows() -> dict[str, object]:
    """Move a small and a large table there and back, in turn."""
    with opened() as workspace:
        small = workspace.create_dataset("bench.main.small", COLUMNS, arm="iceberg")
        small.write(batch(0, FEW))
        large = workspace.create_dataset("bench.main.large", COLUMNS, arm="iceberg")
        large.write(repeated(million(), ROWS // 1_000_000))
        taken: dict[str, list[tuple[float, float]]] = {small.name: [], large.name: []}
        for _ in range(TURNS):
            for dataset in (small, large):
                there = Relocation(dataset.record.identifier, home(dataset.record.slugs))
                for move in (there, there.back()):
                    taken[dataset.name].append(_taken(workspace, dataset, move))
        assert large.to_arrow(columns=["id"]).num_rows == ROWS
    (few, few_cpu), (many, many_cpu) = (_medians(taken[dataset.name]) for dataset in (small, large))
    return {
        "what": f"a move of {FEW:,} and of {ROWS:,} rows",
        "first, p50 ms": few,
        "second, p50 ms": many,
        "ratio": many / few,
        "limit": RATIO,
        "of the CPU": many_cpu / few_cpu,
    }


def _taken(workspace: lakeward.Workspace, dataset: lakeward.Dataset, move: Relocation) -> tuple[float, float]:
    """Move a table; return how many milliseconds that took, and how many of this process's processor."""
    record, started, cpu = dataset.record, time.perf_counter(), time.process_time()
    workspace.moving.move(record, move)
    return (time.perf_counter() - started) * 1000, (time.process_time() - cpu) * 1000


def _medians(taken: list[tuple[float, float]]) -> tuple[float, float]:
    wall, cpu = zip(*taken, strict=True)
    return statistics.median(wall), statistics.median(cpu)


def sweep() -> dict[str, object]:
    """Move many tables in one sweep."""
    with opened() as workspace:
        for number in range(TABLES):
            made = workspace.create_dataset(f"bench.s{number % 4}.d{number}", {"id": "long"}, ["id"], arm="iceberg")
            made.write([{"id": 1}], mode="append")
        started, cpu = time.perf_counter(), time.process_time()
        outcomes = [each.outcome for each in workspace.moves.apply()]
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
    assert outcomes == ["moved"] * TABLES
    return {
        "what": f"{TABLES} moves in one sweep",
        "ms per move": seconds * 1000 / TABLES,
        "ms per move of the process's CPU": cpu * 1000 / TABLES,
        "limit ms": MILLISECONDS,
    }


def main() -> str:
    """Run both and return their tables."""
    rows, swept = in_fresh_process(by_rows), in_fresh_process(sweep)
    return f"{table('A move, by the rows of the table', [rows])}\n{table('A sweep', [swept])}"


if __name__ == "__main__":
    print(main())
