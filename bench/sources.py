"""What is read from elsewhere, against the least that has to be done for it.

A table of a second PostgreSQL synced into Iceberg, against a read by ADBC with a write of one Parquet file. CPU is this
process's: the server that is read does the same for both. Both come in turn, and the least of them counts; what they
need is loaded before, of the syncs by one of a table without rows. Rows of the later syncs are matched by their key.

A workbook scanned, read and imported, against reading its cells by openpyxl alone.

BENCH_DLT=PYTHON     an interpreter that has dlt (see dlt_copy.py), which copies the table to Iceberg, too
BENCH_SLING=PROGRAM  the program of `sling`. It writes an Arrow file: for Parquet it would load DuckDB from the network
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import adbc_driver_postgresql.dbapi
import openpyxl
import psycopg
import pyarrow.parquet as pq
from measure import Measured, in_fresh_process, table, timed, without_telemetry

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.sources.formats.excel import ExcelFile
from lakeward.wiring.sync_plan import SyncRequest

ROWS = 1_000_000
TURNS = 3
SHEET_ROWS = 200_000
QUERY = "SELECT id, customer, amount, note, at FROM orders"
MADE = f"""
CREATE TABLE orders AS SELECT i::bigint AS id, (i % 50000)::int AS customer, i / 8.0::float8 AS amount,
    'order number ' || i AS note, timestamptz '2026-01-01' + i * interval '1 second' AS at
FROM generate_series(1, {ROWS}) i
"""


def reference(url: str, path: Path) -> None:
    """Read by ADBC, and write one file, batch by batch."""
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(QUERY)
        reader = cursor.fetch_record_batch()
        with pq.ParquetWriter(path, reader.schema, compression="zstd") as writer:
            for batch in reader:
                writer.write_batch(batch)


def case() -> list[dict[str, object]]:
    """Measure the reference and the syncs in turn."""
    with tempfile.TemporaryDirectory(prefix="lw-", dir="/tmp") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        with EmbeddedPostgres.acquire(root / "other", root / "cache") as server:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute(MADE)
                connection.execute("ALTER TABLE orders ADD PRIMARY KEY (id)")
                connection.execute("VACUUM ANALYZE orders")
                connection.execute("CREATE TABLE nothing (id int)")
            with lakeward.open(root / "home") as workspace:
                workspace.sources.add("shop", "postgres", {"url": server.url}, ["orders"])
                workspace.sources.sync(SyncRequest("shop", ["nothing"], arm="iceberg"))
                base, first = zip(*(_first(workspace, server.url, root, turn) for turn in range(TURNS)), strict=True)
                least = _least(base)
                rows = [
                    _row("ADBC read + Parquet write", least, least),
                    _row("sync.full, the first", _least(first), least),
                ]
                for what, run in _syncs(workspace, server.url).items():
                    rows.append(_row(what, timed(run), least))
            rows += [_row(what, run, least) for what, run in _others(server.url, root).items()]
    return rows


def _first(workspace: lakeward.Workspace, url: str, root: Path, turn: int) -> tuple[Measured, Measured]:
    """Measure the reference, and a sync into a new dataset."""
    base = timed(lambda: reference(url, root / "reference.parquet"))
    # The last is the one that the later syncs go on from.
    into = None if turn == TURNS - 1 else f"bench.turn_{turn}"
    return base, timed(lambda: workspace.sources.sync(SyncRequest("shop", arm="iceberg", into=into)))


def _least(runs: Sequence[Measured]) -> Measured:
    return min(runs, key=lambda each: each.cpu)


def _others(url: str, root: Path) -> dict[str, Measured]:
    """Let others copy the table, each in a process of its own; what they need to start is counted for sling alone."""
    found: dict[str, Measured] = {}
    if python := os.environ.get("BENCH_DLT"):
        environment = {**without_telemetry(), "PYTHONPATH": os.pathsep.join(sys.path)}
        for target in ("filesystem", "lakeward"):
            script = str(Path(__file__).with_name("dlt_copy.py"))
            copy = [python, script, url, "orders", str(root / f"dlt_{target}"), target]
            done = subprocess.run(copy, capture_output=True, text=True, check=True, env=environment)
            cpu, seconds = map(float, done.stdout.split()[-2:])
            found[f"dlt, to Iceberg by {target}"] = Measured(seconds, float("nan"), cpu)
    if program := os.environ.get("BENCH_SLING"):
        target = ["--tgt-object", f"file://{root}/orders.arrow", "--tgt-options", json.dumps({"format": "arrow"})]
        own = {"SHOP": url, "SLING_HOME_DIR": str(root / "sling")}
        copy = [program, "run", "--src-conn", "SHOP", "--src-stream", "public.orders", *target]
        started, used = time.perf_counter(), _of_children()
        subprocess.run(copy, capture_output=True, check=True, env={**without_telemetry(), **own})
        found["sling, to an Arrow file"] = Measured(time.perf_counter() - started, float("nan"), _of_children() - used)
    return found


def _of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _syncs(workspace: lakeward.Workspace, url: str) -> dict[str, Callable[[], object]]:
    def sync(mode: str) -> object:
        return workspace.sources.sync(SyncRequest("shop", mode=mode, arm="iceberg"))

    def changed() -> object:
        with psycopg.connect(url) as connection:
            connection.execute("UPDATE orders SET note = note || '!' WHERE id % 100 = 0")
        return sync("incremental")

    return {
        "sync.full, nothing new": lambda: sync("full"),
        "sync.incremental, 1 % updated": changed,
        "sync.incremental, nothing new": lambda: sync("incremental"),
    }


def workbook_case() -> list[dict[str, object]]:
    """Measure a read by openpyxl, and what an import does."""
    with tempfile.TemporaryDirectory(prefix="lw-", dir="/tmp") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        path = root / "orders.xlsx"
        _save_workbook(path)
        base = timed(lambda: _read_by_openpyxl(path))
        rows = [_row("openpyxl, read-only", base, base)]
        types = {name: str(type_) for name, type_ in ExcelFile(path).scan().columns.items()}
        with lakeward.open(root / "home") as workspace:
            for what, run in {
                "scan for the types": lambda: ExcelFile(path).scan(),
                "read as batches": lambda: sum(batch.num_rows for batch in ExcelFile(path).read(types)),
                "import into Iceberg, types declared": lambda: workspace.import_file(
                    "main.raw.orders", path, arm="iceberg", columns=types
                ),
            }.items():
                rows.append(_row(what, timed(run), base))
    return rows


def _save_workbook(path: Path) -> None:
    made = openpyxl.Workbook(write_only=True)
    sheet = made.create_sheet("Orders")
    sheet.append([f"c{column}" for column in range(10)])
    start = datetime.fromisoformat("2026-01-01")
    for i in range(SHEET_ROWS):
        at = start + timedelta(seconds=i)
        sheet.append(
            [i, i * 7, i / 8, i % 10_000 / 100, f"customer {i % 5000}", f"order {i}", at, at.date(), i % 2 == 0, None]
        )
    made.save(path)


def _read_by_openpyxl(path: Path) -> int:
    sheet = openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets[0]
    return sum(1 for _ in sheet.iter_rows(values_only=True))


def _row(what: str, run: Measured, base: Measured) -> dict[str, object]:
    return {
        "work": what,
        "CPU s": run.cpu,
        "CPU ratio": run.cpu / base.cpu,
        "s": run.seconds,
        "peak MB": run.peak_mb,
    }


def main() -> str:
    """Return the tables."""
    rows = in_fresh_process(case)
    title = f"{ROWS:,} rows × 5 columns from PostgreSQL to Iceberg, at a load of {os.getloadavg()[0]:.1f}"
    cells = in_fresh_process(workbook_case)
    return (
        table(title, rows)  # type: ignore[arg-type]
        + "\n"
        + table(f"{SHEET_ROWS:,} rows × 10 columns of a workbook", cells)  # type: ignore[arg-type]
    )


if __name__ == "__main__":
    sys.stdout.write(main())
