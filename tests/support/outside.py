"""Reads an Iceberg table as other engines do, by nothing of ours: what `main` names, less what it says is deleted."""

from __future__ import annotations

from functools import cache
from typing import Any

import duckdb
import pyarrow as pa


def main_by_pyiceberg(table: Any) -> pa.Table:
    """Return the rows of `main` as PyIceberg reads them, in the order of their places.

    Args:
        table: PyIceberg's own table, loaded anew.
    """
    return table.scan().to_arrow().sort_by("__row_index")


def main_by_duckdb(table: Any) -> pa.Table:
    """Return the rows of `main` in the order of their places: its files, without the positions that it deletes."""
    parts = []
    with _engine().cursor() as connection:
        for task in table.scan().plan_files():
            query = (
                "SELECT * EXCLUDE (file_row_number) "
                f"FROM read_parquet({_text(_local(task.file.file_path))}, file_row_number = true)"
            )
            if task.delete_files:
                files = ", ".join(_text(_local(file.file_path)) for file in task.delete_files)
                query += (
                    f" WHERE file_row_number NOT IN (SELECT pos FROM read_parquet([{files}]) "
                    f"WHERE file_path = {_text(task.file.file_path)})"
                )
            parts.append(connection.sql(query).to_arrow_table())
    if not parts:
        return main_by_pyiceberg(table)
    return pa.concat_tables(parts, promote_options="default").sort_by("__row_index")


def snapshot_rows(table: Any) -> list[int]:
    """Return the number of rows of each snapshot of the table, as it can be read, oldest first."""
    return [table.scan(snapshot_id=each.snapshot_id).to_arrow().num_rows for each in table.metadata.snapshots]


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    """Open DuckDB once: an instance costs more than all that a test reads with it."""
    connection = duckdb.connect()
    connection.execute("SET GLOBAL TimeZone = 'UTC'; SET GLOBAL arrow_lossless_conversion = true")
    return connection


def _local(path: str) -> str:
    return path.removeprefix("file://")


def _text(value: str) -> str:
    quoted = value.replace("'", "''")
    return f"'{quoted}'"
