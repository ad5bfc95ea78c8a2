"""Flips: the first copy and its comparison, switches under load, and what a dual write costs.

BENCH_ROWS=5000000     rows of the first copy and of the dual write; 1,000,000 if it is not set
BENCH_DLT=PYTHON       an interpreter that has dlt (see dlt_copy.py); without it dlt is not measured
"""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import adbc_driver_postgresql.dbapi
import numpy as np
import psycopg
import pyarrow as pa
from measure import Measured, in_fresh_process, table, timed, without_telemetry
from postgres_rows import drain, empty
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from rows import ARROW, BATCH_ROWS, COLUMNS, batch, million, repeated

import lakeward
from lakeward.cli.drill_process import rooms_of
from lakeward.storage.mirroring import Mirroring
from lakeward.testing.drill.flips import FlipDrill, FlipsUnderLoad, Load, percentile
from lakeward.testing.drill.model import Log
from lakeward.testing.drill.processes import Nursery
from lakeward.testing.drill.writes import COLUMNS as DRILL_COLUMNS
from lakeward.testing.drill.writes import PRIMARY_KEY as DRILL_KEY
from lakeward.types.jsonb import read_columns

MILLIONS = int(os.environ.get("BENCH_ROWS", "1000000")) // 1_000_000
TURNS = 3
SWITCHES = 20
NAME = "bench.main.orders"

Runs = dict[str, list[Measured]]


def _vacuum(workspace: lakeward.Workspace) -> None:
    """Do what autovacuum would do a minute later: without statistics the planner sends no workers."""
    with adbc_driver_postgresql.dbapi.connect(workspace.database.libpq_url, autocommit=True) as connection:
        connection.cursor().execute("VACUUM ANALYZE lakeward.dataset_rows")


def _server(workspace: lakeward.Workspace) -> int:
    """Return the process id of the server's first process, which starts the others."""
    with psycopg.connect(workspace.database.libpq_url) as connection:
        (backend,) = connection.execute("SELECT pg_backend_pid()").fetchone() or (0,)
        _, _, rest = Path(f"/proc/{backend}/stat").read_text(encoding="utf-8").rpartition(")")
        return int(rest.split()[1])


def _no_autovacuum(workspace: lakeward.Workspace) -> None:
    """Let it not be counted with whatever comes after a large write."""
    with psycopg.connect(workspace.database.libpq_url, autocommit=True) as connection:
        connection.execute("ALTER TABLE lakeward.dataset_rows SET (autovacuum_enabled = false)")


def _in_turn(
    workspace: lakeward.Workspace,
    works: dict[str, Callable[[], object]],
    after: Callable[[], object],
    before: Callable[[], object] | None = None,
    turns: int = TURNS,
) -> Runs:
    """Measure each work in turn, the whole round several times.

    Args:
        workspace: whose server's CPU counts.
        works: by name.
        after: is done after each round.
        before: is done before each work, which then can be done in any order: every other round has the reverse one.
        turns: how many rounds.
    """
    runs: Runs = {name: [] for name in works}
    server = _server(workspace)
    for turn in range(turns):
        for name in sorted(works, reverse=bool(turn % 2)) if before else works:
            if before:
                before()
            runs[name].append(timed(works[name], server))
        after()
    return runs


def _set_workers(workspace: lakeward.Workspace, number: int | None) -> None:
    """Say how many parallel workers the server may start; None: as many as it comes with."""
    with psycopg.connect(workspace.database.libpq_url, autocommit=True) as connection:
        connection.execute(f"ALTER SYSTEM SET max_parallel_workers = {'DEFAULT' if number is None else number}")
        connection.execute("SELECT pg_reload_conf()")


def _best(runs: Runs) -> dict[str, object]:
    return {
        name: [min(each.seconds for each in of), max(each.peak_mb for each in of), min(each.cpu for each in of)]
        for name, of in runs.items()
    }


def to_iceberg(dlt: str | None) -> dict[str, object]:
    """Copy from Postgres to Iceberg, compare, and let others do the same copy."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        orders = workspace.create_dataset(NAME, COLUMNS)
        orders.write(repeated(million(), MILLIONS), mode="replace")
        _vacuum(workspace)
        url, record = workspace.database.libpq_url, orders.record
        rows = (
            f"FROM lakeward.dataset_rows "
            f"WHERE dataset_id = {record.id} AND version = {orders.version} AND until IS NULL"
        )
        as_text = f"SELECT {read_columns(orders.schema, orders.schema.names).as_string()} {rows}"
        query = f"SELECT {', '.join(map(_cast, COLUMNS))} {rows}"
        works: dict[str, Callable[[], object]] = {
            "ADBC read with casts": lambda: drain(url, query),
            "ADBC read as text": lambda: drain(url, as_text),
            "by hand": lambda: _by_hand(url, query, Path(tempfile.mkdtemp(dir=scratch))),
            "by hand, compared": lambda: _compared_by_hand(url, query, Path(tempfile.mkdtemp(dir=scratch))),
            "backfill": lambda: workspace.replication.backfill(record, "iceberg"),
            # The first comparison, which is what makes the copy count.
            "verify": lambda: workspace.flip(NAME).stage("verify"),
            "Postgres digest": lambda: workspace.storage.digest(record, arm="postgres"),
            "Iceberg digest": lambda: workspace.storage.digest(record, arm="iceberg"),
        }
        # Each digest has one processor, so that neither waits for the other where there are two of them.
        alone: dict[str, Callable[[], object]] = {
            f"{name}, no workers": works[name] for name in ("verify", "Postgres digest")
        }
        workspace.flip(NAME).run("iceberg", until="verify")
        _set_workers(workspace, 0)
        found = _best(_in_turn(workspace, alone, lambda: None))
        _set_workers(workspace, None)
        workspace.replication.drain(record, "iceberg")
        if dlt:
            with adbc_driver_postgresql.dbapi.connect(url, autocommit=True) as connection:
                connection.cursor().execute(f"CREATE TABLE public.bench_orders AS {query}")
        found |= _best(_in_turn(workspace, works, lambda: workspace.replication.drain(record, "iceberg")))
        digests = [found["Postgres digest"], found["Iceberg digest"]]
        found["both digests, one after the other"] = [sum(part) for part in zip(*digests, strict=True)]
        if dlt:
            copies = [_by_dlt(dlt, url, Path(tempfile.mkdtemp(dir=scratch))) for _ in range(2)]
            found["dlt"] = [min(copies), 0.0, None]
        return {**found, "load": os.getloadavg()[0]}


def to_postgres() -> dict[str, object]:
    """Copy from Iceberg to Postgres, against a write of the same rows to the Postgres arm."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        _no_autovacuum(workspace)
        batches = million()
        orders = workspace.create_dataset(NAME, COLUMNS, arm="iceberg")
        orders.write(repeated(batches, MILLIONS), mode="replace")
        other = workspace.create_dataset("bench.main.other", COLUMNS)
        works: dict[str, Callable[[], object]] = {
            "write": lambda: other.write(repeated(batches, MILLIONS), mode="replace"),
            "backfill": lambda: workspace.replication.backfill(orders.record, "postgres"),
        }
        url, copied = workspace.database.libpq_url, orders.record
        return _best(
            _in_turn(workspace, works, lambda: workspace.replication.drain(copied, "postgres"), lambda: empty(url))
        )


def dual() -> dict[str, object]:
    """Upsert 1 % of the rows at random keys, with and without a mirror; and how long the comparison takes of it."""
    comparisons: list[float] = []

    def measured(self: Mirroring, *arguments: object) -> int:
        started = time.perf_counter()
        rows = compare(self, *arguments)  # type: ignore[arg-type]
        comparisons.append(time.perf_counter() - started)
        return rows

    compare, Mirroring.compare = Mirroring.compare, measured  # type: ignore[method-assign, assignment]
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        orders = workspace.create_dataset(NAME, COLUMNS, ["id"])
        rows = MILLIONS * 1_000_000
        stream = (batch(start, min(BATCH_ROWS, rows - start)) for start in range(0, rows, BATCH_ROWS))
        orders.write(pa.RecordBatchReader.from_batches(ARROW, stream), mode="append")
        _vacuum(workspace)
        workspace.flip(NAME).run("iceberg", until="verify")
        single = [timed(lambda seed=seed: orders.write(_one_percent(rows, seed), mode="upsert")) for seed in range(3)]
        workspace.flip(NAME).run("iceberg", until="mirror")
        comparisons.clear()
        both = [timed(lambda seed=seed: orders.write(_one_percent(rows, seed), mode="upsert")) for seed in range(3, 6)]
        assert len(comparisons) == len(both) and workspace.replication.lag(orders.record, "iceberg").current
    shares = [each / write.seconds for each, write in zip(comparisons, both, strict=True)]
    return {
        "single": min(each.seconds for each in single),
        "dual": min(each.seconds for each in both),
        "comparison": min(comparisons),
        "share": min(shares),
    }


def under_load() -> FlipsUnderLoad:
    """Switch and revert while four processes write as fast as they can."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        workspace.create_dataset(NAME, DRILL_COLUMNS, DRILL_KEY)
        journals = Path(scratch) / "journals"
        journals.mkdir()
        place = {
            "home": str(Path(scratch) / "processes"),
            "database_url": workspace.database.libpq_url,
            "warehouse": str(Path(scratch) / "home" / "warehouse"),
        }
        load = Load(readers=0, killed_in=0.0, at_least=("switch", *("revert", "switch") * SWITCHES))
        rooms = rooms_of(workspace)
        with Nursery("lakeward.cli.drill_process", place, {}, Log()) as nursery:
            return FlipDrill(rooms, nursery, NAME, journals, 1, load).run(0, lambda _: None)


def _one_percent(rows: int, seed: int) -> pa.Table:
    """Return new values for 1 % of the rows, at random keys."""
    ids = np.random.default_rng(seed).choice(rows, rows // 100, replace=False)
    changed = pa.Table.from_batches([batch(0, len(ids), seed=seed + 100)])
    return changed.set_column(0, ARROW.field("id"), pa.array(ids))


_POSTGRES = {"long": "bigint", "int": "integer", "double": "float8", "string": "text"}
"""What types are called in Postgres, where it is something else."""


def _cast(name: str) -> str:
    return f"(data->>'{name}')::{_POSTGRES.get(COLUMNS[name], COLUMNS[name])} AS {name}"


def _by_hand(url: str, query: str, directory: Path) -> Table:
    """Read everything with the casts that its types need, and append it with PyIceberg to a table of those types."""
    catalog = SqlCatalog("hand", uri=f"sqlite:///{directory}/catalog.db", warehouse=directory.as_uri())
    catalog.create_namespace("hand")
    typed = _read(url, query)
    table = catalog.create_table("hand.orders", schema=typed.schema)
    table.append(typed)
    return table


def _compared_by_hand(url: str, query: str, directory: Path) -> None:
    """Copy by hand, and then see by hand, too, that both sides have the same rows."""
    copied = _by_hand(url, query, directory).scan().to_arrow().sort_by("id")
    assert copied.cast(ARROW).equals(_read(url, query).sort_by("id"))


def _read(url: str, query: str) -> pa.Table:
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        rows = cursor.fetch_arrow_table()
    return pa.table({field.name: _typed(rows[field.name], field.type) for field in ARROW})


def _typed(column: pa.ChunkedArray, type_: pa.DataType) -> pa.ChunkedArray:
    """Return a column in the type that its table has: ADBC brings decimals as text with a type of its own."""
    if isinstance(column.type, pa.ExtensionType):
        column = pa.chunked_array([chunk.storage for chunk in column.chunks], column.type.storage_type)
    return column.cast(type_)


def _by_dlt(python: str, url: str, directory: Path) -> float:
    copy = [python, str(Path(__file__).with_name("dlt_copy.py")), url, "bench_orders", str(directory)]
    done = subprocess.run(copy, capture_output=True, text=True, check=True, env=without_telemetry())
    return float(done.stdout.split()[-1])


def _seconds(found: dict[str, object], name: str) -> float:
    return float(found[name][0])  # type: ignore[index]


def _cpu(found: dict[str, object], name: str) -> float:
    return float(found[name][2])  # type: ignore[index]


def _copies(there: dict[str, object], back: dict[str, object]) -> str:
    slower = max(("Postgres digest", "Iceberg digest"), key=lambda name: _seconds(there, name))
    lines = [
        ("backfill to Iceberg", there, "backfill", "ADBC read with casts", "≤ 1.3"),
        ("backfill to Iceberg", there, "backfill", "ADBC read as text", "–"),
        ("verify", there, "verify", slower, "≤ 1.1"),
        ("verify", there, "verify", "both digests, one after the other", "–"),
        ("verify, no workers", there, "verify, no workers", "Postgres digest, no workers", "≤ 1.1"),
        ("backfill to Postgres", back, "backfill", "write", "≤ 1.2"),
    ]
    rows: list[dict[str, object]] = [
        {
            "what": what,
            "s": _seconds(found, name),
            "reference": reference,
            "its s": _seconds(found, reference),
            "ratio": f"{_seconds(found, name) / _seconds(found, reference):.2f} ({limit})",
            "CPU s": _cpu(found, name),
            "its CPU s": _cpu(found, reference),
            "CPU ratio": _cpu(found, name) / _cpu(found, reference),
            "peak MB (≤ 400)": found[name][1],  # type: ignore[index]
        }
        for what, found, name, reference, limit in lines
    ]
    return table(f"Flip of {MILLIONS}M rows × 10 columns", rows)


def _by_others(there: dict[str, object]) -> str:
    ours, cpu = (of(there, "backfill") + of(there, "verify") for of in (_seconds, _cpu))
    first: dict[str, object] = {"s": ours, "times ours (≥ 1)": "–", "CPU s": cpu, "times our CPU": "–"}
    lines: list[dict[str, object]] = [{"first copy": "Lakeward, verified", **first}]
    for name in ("by hand", "by hand, compared", "dlt"):
        if name in there:
            # What dlt uses is of a process of its own, and not measured.
            used = _cpu(there, name) if name != "dlt" else None
            lines.append(
                {
                    "first copy": name,
                    "s": _seconds(there, name),
                    "times ours (≥ 1)": _seconds(there, name) / ours,
                    "CPU s": used if used is not None else "–",
                    "times our CPU": used / cpu if used is not None else "–",
                }
            )
    return table(f"First copy of {MILLIONS}M rows to Iceberg by others", lines)


def _dual(found: dict[str, object]) -> str:
    single, both, share = (float(str(found[name])) for name in ("single", "dual", "share"))
    row = {"one arm s": single, "both arms s": both, "times": both / single, "comparison of it (≤ 0.10)": share}
    return table(f"Upsert of 1 % of {MILLIONS}M rows, Postgres with Iceberg as its mirror", [row])


def _load(found: FlipsUnderLoad) -> str:
    rows: list[dict[str, object]] = [
        {
            "what": name,
            "times": len(times),
            "p50 s": percentile(times, 50),
            "p99 s (≤ 1)": percentile(times, 99),
            "longest wait of a writer while none wrote, s (≤ 1)": found.longest_wait,
            "p50 of a write itself, s": found.typical_write,
            "writes": found.writes["acknowledged"],
            "violations": len(found.violations),
        }
        for name, times in (("switch", found.switch), ("revert", found.revert))
    ]
    return table("Switch and revert while 4 processes write", rows)


def main() -> str:
    """Run every case and return the tables."""
    dlt = os.environ.get("BENCH_DLT")
    there, back = in_fresh_process(to_iceberg, dlt), in_fresh_process(to_postgres)
    return "\n".join([_copies(there, back), _by_others(there), _dual(in_fresh_process(dual)), _load(under_load())])


if __name__ == "__main__":
    print(main())
