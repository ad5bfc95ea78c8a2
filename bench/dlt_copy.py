"""What `dlt` makes of the first copy: Postgres to Iceberg on the file system. Run by an interpreter that has dlt.

BENCH_DLT=/path/to/python make bench ARGS=flip        `pip install "dlt[filesystem,pyiceberg,sql-database]"`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import dlt
from dlt.destinations import filesystem
from dlt.sources.sql_database import sql_table


def main(url: str, table: str, directory: str) -> None:
    """Copy a table, and print the seconds that it took."""
    rows = sql_table(credentials=url, schema="public", table=table, backend="pyarrow", chunk_size=100_000)
    rows.apply_hints(table_format="iceberg")
    pipeline = dlt.pipeline(
        "first_copy",
        destination=filesystem(bucket_url=Path(directory, "lake").as_uri()),
        dataset_name="bench",
        pipelines_dir=str(Path(directory, "pipelines")),
    )
    started = time.perf_counter()
    pipeline.run(rows)
    print(time.perf_counter() - started)


if __name__ == "__main__":
    main(*sys.argv[1:])
