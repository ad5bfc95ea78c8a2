"""The digest of one million rows: in DuckDB against a bare md5 of the same text, in Postgres against DuckDB.

The bare md5 is measured twice: with the text made on the way, as the digest has to, and of texts that stand ready.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import duckdb
import pyarrow as pa
from measure import in_fresh_process, table, timed
from rows import COLUMNS, million, repeated

import lakeward
from lakeward.types.digest import duckdb_digest_sql, row_text_duckdb

TURNS = 3


def case() -> dict[str, object]:
    """Return the best seconds of each, over turns that alternate."""
    batches = million()
    seconds: dict[str, list[float]] = {"md5": [], "md5 of ready text": [], "DuckDB": [], "Postgres": []}
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch, lakeward.open(Path(scratch) / "home") as workspace:
        orders = workspace.create_dataset("bench.main.orders", COLUMNS)
        orders.write(repeated(batches, 1), mode="replace")
        # Autovacuum would do it a minute later: without visibility and statistics the planner sends no workers.
        with workspace.database.driver() as connection:
            connection.autocommit = True
            connection.execute("VACUUM ANALYZE lakeward.dataset_rows")
            connection.autocommit = False
        with duckdb.connect() as connection:
            connection.execute("SET TimeZone = 'UTC'")
            connection.register("source", pa.Table.from_batches(batches))
            connection.execute("CREATE TABLE rows AS SELECT * FROM source")
            text = row_text_duckdb(orders.schema)
            connection.execute(f"CREATE TABLE texts AS SELECT {text} AS text FROM rows")
            bare = f"SELECT max(md5({text})) FROM rows"
            ready = "SELECT max(md5(text)) FROM texts"
            full = duckdb_digest_sql(orders.schema, "FROM rows")
            for _ in range(TURNS):
                seconds["md5"].append(timed(lambda: connection.execute(bare).fetchall()).seconds)
                seconds["md5 of ready text"].append(timed(lambda: connection.execute(ready).fetchall()).seconds)
                seconds["DuckDB"].append(timed(lambda: connection.execute(full).fetchall()).seconds)
                seconds["Postgres"].append(timed(orders.digest).seconds)
    return {name: min(runs) for name, runs in seconds.items()}


def main() -> str:
    """Run the case and return the table."""
    found = in_fresh_process(case)
    bare, ready = float(str(found["md5"])), float(str(found["md5 of ready text"]))
    duck, postgres = float(str(found["DuckDB"])), float(str(found["Postgres"]))
    lines = [
        ("DuckDB", duck, "md5 of the same text, made on the way", bare, "≤ 1.2"),
        ("DuckDB", duck, "md5 of the same text, ready", ready, "–"),
        ("Postgres, two workers", postgres, "DuckDB", duck, "≤ 1.5"),
    ]
    rows: list[dict[str, object]] = [
        {"engine": engine, "s": seconds, "reference": name, "its s": its, "ratio": f"{seconds / its:.2f} ({limit})"}
        for engine, seconds, name, its, limit in lines
    ]
    return table("Digest of 1M rows × 10 columns", rows)


if __name__ == "__main__":
    print(main())
