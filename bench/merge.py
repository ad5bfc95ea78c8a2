"""Keyed writes: ours against PyIceberg's `Table.upsert` and the floor below any of them, and in Postgres ON CONFLICT.

The floor is what nobody who writes a batch by key can leave out: read the key column of the whole table, and append the
batch, both by PyIceberg on a table of the same rows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import psycopg
import pyarrow as pa
from measure import in_fresh_process, table, timed
from pgpq import ArrowToPostgresBinaryEncoder
from psycopg import sql
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from rows import ARROW, BATCH_ROWS, COLUMNS, batch

import lakeward

REPEATS = 3


def target(rows: int) -> pa.RecordBatchReader:
    """Return a stream of `rows` rows with the ids from 0."""
    starts = range(0, rows, BATCH_ROWS)
    return pa.RecordBatchReader.from_batches(ARROW, (batch(start, min(BATCH_ROWS, rows - start)) for start in starts))


def changes(rows: int, size: int, seed: int, clustered: bool = False) -> pa.Table:
    """Return `size` rows in random order: half of them new values of rows of a target, half new ones.

    Args:
        rows: of the target.
        size: of the batch.
        seed: another one, another batch.
        clustered: whether the keys lie side by side, as those of today's orders do.
    """
    random = np.random.default_rng(seed)
    if clustered:
        ids = np.arange(rows - size // 2, rows + size - size // 2)
    else:
        old = random.choice(rows, size // 2, replace=False)
        ids = np.concatenate([old, np.arange(rows, rows + size - size // 2)])
    random.shuffle(ids)
    values = batch(0, size, seed=1000 + seed)
    return pa.table([pa.array(ids), *values.columns[1:]], schema=ARROW)


def iceberg(scratch: Path) -> lakeward.Workspace:
    """Open a workspace of its own."""
    return lakeward.open(scratch / "home")


def theirs(scratch: Path, rows: int, name: str) -> Table:
    """Make PyIceberg's table of the same rows, in a catalog of its own."""
    (scratch / "theirs").mkdir(exist_ok=True)
    catalog = SqlCatalog("b", uri=f"sqlite:///{scratch}/theirs/c.db", warehouse=f"file://{scratch}/theirs")
    catalog.create_namespace_if_not_exists("b")
    made = catalog.create_table(f"b.{name}", schema=ARROW)
    for start in range(0, rows, 1_000_000):
        made.append(target(rows).read_all().slice(start, 1_000_000) if rows <= 1_000_000 else _slice(start, rows))
    return made


def _slice(start: int, rows: int) -> pa.Table:
    end = min(rows, start + 1_000_000)
    return pa.Table.from_batches(
        [batch(each, min(BATCH_ROWS, end - each)) for each in range(start, end, BATCH_ROWS)], ARROW
    )


def random_keys(millions: int) -> dict[str, object]:
    """Upsert a batch of a tenth of the target, half of it updates, at random keys."""
    rows = millions * 1_000_000
    with tempfile.TemporaryDirectory(prefix="lw-") as place:
        scratch = Path(place)
        ours, peaks = [], []
        with iceberg(scratch) as workspace:
            for seed in range(REPEATS):
                orders = workspace.create_dataset(f"bench.main.orders{seed}", COLUMNS, ["id"], arm="iceberg")
                orders.write(target(rows), mode="replace")
                rows_in = changes(rows, rows // 10, seed)
                run = timed(partial(orders.write, rows_in, mode="upsert"))
                ours.append(run.seconds)
                peaks.append(run.peak_mb)
                assert orders.row_count == rows + rows // 20
        table_ = theirs(scratch, rows, "floor")
        floors = [timed(partial(_floor, table_, changes(rows, rows // 10, seed))).seconds for seed in range(3)]
        upserted = theirs(scratch, rows, "upserted")
        rows_in = changes(rows, rows // 10, 0)
        reference = timed(partial(upserted.upsert, rows_in, join_cols=["id"])).seconds
    best, floor = min(ours), min(floors)
    return {
        "target": f"{millions}M",
        "batch": f"{rows // 10:,}",
        "Lakeward s": best,
        "Table.upsert s": reference,
        "times faster": reference / best,
        "bar": f"≥ {30 if millions == 1 else 80}",
        "floor s": floor,
        "of the floor (≤ 2)": best / floor,
        "peak MB": max(peaks),
    }


def _floor(table_: Table, rows_in: pa.Table) -> None:
    table_.scan(selected_fields=("id",)).to_arrow()
    table_.append(rows_in)


def large_target(millions: int) -> dict[str, object]:
    """Upsert 50,000 rows whose keys lie side by side."""
    rows = millions * 1_000_000
    with tempfile.TemporaryDirectory(prefix="lw-") as place, iceberg(Path(place)) as workspace:
        orders = workspace.create_dataset("bench.main.orders", COLUMNS, ["id"], arm="iceberg")
        orders.write(target(rows), mode="replace")
        runs = []
        for number in range(REPEATS):
            rows_in = changes(rows + 25_000 * number, 50_000, number, clustered=True)
            runs.append(timed(partial(orders.write, rows_in, mode="upsert")))
        assert orders.row_count == rows + 25_000 * REPEATS
    return {"target": f"{millions}M", "s": min(run.seconds for run in runs), "peak": max(run.peak_mb for run in runs)}


def key_of(columns: int) -> dict[str, object]:
    """Upsert 20,000 rows into 1M, with a key of one column or of two."""
    with tempfile.TemporaryDirectory(prefix="lw-") as place, iceberg(Path(place)) as workspace:
        declared = {"shop": "long", "number": "long", **COLUMNS}
        key = ["id"] if columns == 1 else ["shop", "number"]
        orders = workspace.create_dataset("bench.main.orders", declared, key, arm="iceberg")
        orders.write(_with_shop(target(1_000_000).read_all()), mode="replace")
        runs = []
        for seed in range(5):
            rows_in = _with_shop(changes(1_000_000, 20_000, seed))
            runs.append(timed(partial(orders.write, rows_in, mode="upsert")).seconds)
    return {"columns": columns, "s": sorted(runs)[2]}


def _with_shop(rows: pa.Table) -> pa.Table:
    ids = rows["id"].to_numpy()
    return rows.add_column(0, "number", pa.array(ids % 1000)).add_column(0, "shop", pa.array(ids // 1000))


def chained() -> dict[str, object]:
    """Upsert 1 % of 1M rows sixteen times, with automatic maintenance, and scan the result."""
    with tempfile.TemporaryDirectory(prefix="lw-") as place, iceberg(Path(place)) as workspace:
        orders = workspace.create_dataset("bench.main.orders", COLUMNS, ["id"], arm="iceberg")
        orders.write(target(1_000_000), mode="replace")
        writes = []
        for seed in range(16):
            rows_in = changes(orders.row_count, 10_000, seed)
            writes.append(timed(partial(orders.write, rows_in, mode="upsert")).seconds)
        fresh = workspace.create_dataset("bench.main.fresh", COLUMNS, ["id"], arm="iceberg")
        fresh.write(orders.read(), mode="replace")
        scans: dict[str, list[float]] = {"chained": [], "fresh": []}
        for _ in range(5):
            for name, dataset in (("chained", orders), ("fresh", fresh)):
                scans[name].append(timed(partial(_scan, dataset)).seconds)
        versions = orders.version
    ratio = min(scans["chained"]) / min(scans["fresh"])
    return {
        "upserts": 16,
        "median s": sorted(writes)[8],
        "worst s": max(writes),
        "versions": versions,
        "scan s": min(scans["chained"]),
        "scan of a fresh table s": min(scans["fresh"]),
        "ratio (≤ 1.3)": ratio,
    }


def _scan(dataset: lakeward.Dataset) -> None:
    for _ in dataset.read():
        pass


def in_postgres() -> dict[str, object]:
    """Upsert 100,000 rows into 1M on the Postgres arm, and the same by hand into a table with a primary key."""
    with tempfile.TemporaryDirectory(prefix="lw-") as place, iceberg(Path(place)) as workspace:
        orders = workspace.create_dataset("bench.main.orders", COLUMNS, ["id"])
        orders.write(target(1_000_000), mode="replace")
        by_hand: list[float] = []
        ours: list[float] = []
        with psycopg.connect(workspace.database.libpq_url, autocommit=True) as connection:
            _keyed_table(connection)
            for seed in range(REPEATS):
                connection.execute("VACUUM ANALYZE")
                connection.execute("CHECKPOINT")
                rows_in = changes(1_000_000 + 50_000 * seed, 100_000, seed)
                by_hand.append(timed(partial(_on_conflict, connection, rows_in)).seconds)
                connection.execute("CHECKPOINT")
                ours.append(timed(partial(orders.write, rows_in, mode="upsert")).seconds)
            count = connection.execute("SELECT count(*) FROM by_hand").fetchone()
        assert count == (orders.row_count,)
    return {
        "target": "1M",
        "batch": "100,000",
        "ON CONFLICT s": min(by_hand),
        "Lakeward s": min(ours),
        "ratio (≤ 2)": min(ours) / min(by_hand),
    }


_KEYED = """
CREATE TABLE by_hand (
    id bigint PRIMARY KEY, customer_id int, amount numeric(18,4), price float8, paid bool, status text, note text,
    day date, at timestamptz, quantity bigint
)
"""
# Binary COPY wants the driver's form of each column, which for a decimal is text.
_INCOMING = """
CREATE TEMP TABLE incoming (
    id bigint, customer_id int, amount text, price float8, paid bool, status text, note text, day date,
    at timestamptz, quantity bigint
)
"""


def _keyed_table(connection: psycopg.Connection[tuple[object, ...]]) -> None:
    connection.execute(_KEYED)
    connection.execute(_INCOMING)
    for start in range(0, 1_000_000, 100_000):
        _on_conflict(connection, pa.Table.from_batches([batch(start, 100_000)]))


def _on_conflict(connection: psycopg.Connection[tuple[object, ...]], rows_in: pa.Table) -> None:
    """Copy a batch into a temporary table and merge it, in one transaction."""
    text = rows_in.set_column(2, "amount", rows_in["amount"].cast(pa.string()))
    encoder = ArrowToPostgresBinaryEncoder(text.schema)
    names = [sql.Identifier(name) for name in rows_in.column_names]
    columns = sql.SQL(", ").join(names)
    updates = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in names[1:])
    with connection.transaction():
        connection.execute("TRUNCATE incoming")
        with connection.cursor().copy(sql.SQL("COPY incoming ({}) FROM STDIN (FORMAT BINARY)").format(columns)) as copy:
            copy.write(encoder.write_header())
            for each in text.to_batches(max_chunksize=BATCH_ROWS):
                copy.write(encoder.write_batch(each))
            copy.write(encoder.finish())
        connection.execute(
            sql.SQL("INSERT INTO by_hand ({0}) SELECT {1} FROM incoming ON CONFLICT (id) DO UPDATE SET {2}").format(
                columns,
                sql.SQL(", ").join(
                    sql.SQL("{}::numeric").format(name) if name == sql.Identifier("amount") else name for name in names
                ),
                updates,
            )
        )


def main() -> str:
    """Run every case and return the tables."""
    each: Callable[..., dict[str, object]] = in_fresh_process
    small, large = each(large_target, 1), each(large_target, 12)
    one, two = each(key_of, 1), each(key_of, 2)
    return "\n".join(
        [
            table("Upsert at random keys, Iceberg", [each(random_keys, millions) for millions in (1, 5)]),
            table(
                "Upsert of 50,000 rows side by side, Iceberg",
                [
                    {
                        "into 1M s": small["s"],
                        "into 12M s": large["s"],
                        "ratio (≤ 1.5)": float(str(large["s"])) / float(str(small["s"])),
                        "peak MB at 12M (≤ 350)": large["peak"],
                    }
                ],
            ),
            table(
                "Upsert of 20,000 rows into 1M, Iceberg",
                [
                    {
                        "key of one column s": one["s"],
                        "key of two columns s": two["s"],
                        "ratio (≤ 2)": float(str(two["s"])) / float(str(one["s"])),
                    }
                ],
            ),
            table("Chained upserts of 1 %, Iceberg", [each(chained)]),
            table("Upsert of a tenth, Postgres", [each(in_postgres)]),
        ]
    )


if __name__ == "__main__":
    print(main())
