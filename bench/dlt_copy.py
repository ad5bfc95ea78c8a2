"""What `dlt` makes of the first copy: Postgres to Iceberg on the file system. Run by an interpreter that has dlt.

BENCH_DLT=/path/to/python make bench ARGS=flip        `pip install "dlt[filesystem,pyiceberg,sql-database]"`
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import dlt
from dlt.common.destination import Destination
from dlt.destinations import filesystem
from dlt.sources.sql_database import sql_table


def main(url: str, table: str, directory: str, target: str = "filesystem") -> None:
    """Copy a table, and print what it took: CPU seconds, and seconds."""
    rows = sql_table(credentials=url, schema="public", table=table, backend="pyarrow", chunk_size=100_000)
    if target == "lakeward":
        # By its name: the interpreter need not have Lakeward otherwise.
        home = str(Path(directory, "home"))
        destination = Destination.from_reference("lakeward.dlt.lakeward", home=home, arm="iceberg")
    else:
        rows.apply_hints(table_format="iceberg")
        destination = filesystem(bucket_url=Path(directory, "lake").as_uri())
    pipeline = dlt.pipeline(
        "first_copy",
        destination=destination,
        dataset_name="bench",
        pipelines_dir=str(Path(directory, "pipelines")),
    )
    started, used = time.perf_counter(), time.process_time()
    pipeline.run(rows)
    print(time.process_time() - used, time.perf_counter() - started)


if __name__ == "__main__":
    main(*sys.argv[1:])
