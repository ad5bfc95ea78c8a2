"""The digest of one million rows: in DuckDB against a bare md5 of the same text, in Postgres against DuckDB."""

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
    seconds: dict[str, list[float]] = {"bare md5": [], "DuckDB": [], "Postgres": []}
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
            connection.execute(f"CREATE TABLE texts AS SELECT {row_text_duckdb(orders.schema)} AS text FROM rows")
            # The same sums over the same hashes, with the texts made before.
            bare = "SELECT count(*), sum(md5_number_upper(text)), sum(md5_number_lower(text)) FROM texts"
            full = duckdb_digest_sql(orders.schema, "FROM rows")
            for _ in range(TURNS):
                seconds["bare md5"].append(timed(lambda: connection.execute(bare).fetchall()).seconds)
                seconds["DuckDB"].append(timed(lambda: connection.execute(full).fetchall()).seconds)
                seconds["Postgres"].append(timed(orders.digest).seconds)
    return {name: min(runs) for name, runs in seconds.items()}


def main() -> str:
    """Run the case and return the table."""
    found = in_fresh_process(case)
    bare, duck, postgres = (float(str(found[name])) for name in ("bare md5", "DuckDB", "Postgres"))
    rows = [
        {"engine": "DuckDB", "seconds": duck, "reference": f"bare md5 {bare:.2f} s", "ratio": f"{duck / bare:.2f} (≤ 1.2)"},
        {
            "engine": "Postgres, two workers",
            "seconds": postgres,
            "reference": f"DuckDB {duck:.2f} s",
            "ratio": f"{postgres / duck:.2f} (≤ 1.5)",
        },
    ]
    return table("Digest of 1M rows × 10 columns", rows)


if __name__ == "__main__":
    print(main())
