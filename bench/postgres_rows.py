"""The Postgres arm against ADBC doing the bare minimum: reading with the same select list, ingesting ready JSON."""

from __future__ import annotations

import tempfile
from pathlib import Path

import adbc_driver_postgresql.dbapi
import duckdb
import pyarrow as pa
from measure import Measured, in_fresh_process, table, timed
from rows import COLUMNS, million, repeated

import lakeward
from lakeward.types.jsonb import encode_sql, read_columns

TURNS = 4


def case() -> dict[str, object]:
    """Write and read one million rows, ours and the reference in turn; best of each."""
    batches = million()
    results: dict[str, list[Measured]] = {"ours write": [], "ADBC write": [], "ours read": [], "ADBC read": []}
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        orders = workspace.create_dataset("bench.main.orders", COLUMNS)
        url = workspace.database.libpq_url
        ready = _ready_json(batches, orders)
        select = read_columns(orders.schema, orders.schema.names).as_string()
        writes = {
            "ADBC write": lambda: _ingest(url, ready),
            "ours write": lambda: orders.write(repeated(batches, 1), mode="replace"),
        }
        for turn in range(TURNS):
            # In turn first, and each on an empty table with its log written out: a fuller one takes longer.
            for name in sorted(writes, reverse=bool(turn % 2)):
                empty(url)
                results[name].append(timed(writes[name]))
        empty(url)
        orders.write(repeated(batches, 1), mode="replace")
        query = (
            f"SELECT {select} FROM lakeward.dataset_rows WHERE dataset_id = {orders.record.id} "
            f"AND version = {orders.version} AND until IS NULL"
        )
        for _ in range(TURNS):
            results["ADBC read"].append(timed(lambda: drain(url, query)))
            results["ours read"].append(timed(lambda: sum(each.num_rows for each in orders.read())))
    best = {name: min(run.seconds for run in runs) for name, runs in results.items()}
    return {name: [best[name], max(run.peak_mb for run in runs)] for name, runs in results.items()}


def _ready_json(batches: list[pa.RecordBatch], orders: lakeward.Dataset) -> pa.Table:
    """Return the rows as ADBC takes them: JSON made before, identity and version columns beside it."""
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("source", pa.Table.from_batches(batches))
        made = connection.sql(
            f"SELECT -1::BIGINT AS dataset_id, id AS row_id, id AS row_index, 1::BIGINT AS version, "
            f"TIMESTAMPTZ '2026-01-01 00:00:00+00' AS created_at, {encode_sql(orders.schema)} AS data FROM source"
        ).to_arrow_table()
    return made.set_column(5, "data", made["data"].cast(pa.json_()))


def _ingest(url: str, rows: pa.Table) -> None:
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("dataset_rows", rows, mode="append", db_schema_name="lakeward")
        connection.commit()


def empty(url: str) -> None:
    """Leave the table of rows empty, and nothing to be written out: a fuller one takes longer."""
    with adbc_driver_postgresql.dbapi.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("TRUNCATE lakeward.dataset_rows")
        cursor.execute("CHECKPOINT")


def drain(url: str, query: str) -> int:
    """Read a query's whole result by ADBC, and return its number of rows."""
    with adbc_driver_postgresql.dbapi.connect(url) as connection, connection.cursor() as cursor:
        cursor.execute(query)
        return sum(batch.num_rows for batch in cursor.fetch_record_batch())


def main() -> str:
    """Run the case and return the table."""
    found = in_fresh_process(case)
    rows = []
    for what, limit in (("write", "≤ 1.0"), ("read", "≤ 1.15")):
        (reference, _), (ours, peak) = found[f"ADBC {what}"], found[f"ours {what}"]
        rows.append(
            {
                "1M rows": what,
                "ADBC s": reference,
                "Lakeward s": ours,
                "ratio": f"{ours / reference:.2f} ({limit})",
                "peak MB (≤ 400)": peak,
            }
        )
    return table("Postgres arm, 1M rows × 10 columns", rows)


if __name__ == "__main__":
    print(main())
