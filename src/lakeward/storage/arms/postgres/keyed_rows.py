"""The query of those Postgres rows that have one of some keys, by the index that keyed writes use, too."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from psycopg import sql

from lakeward.control.db import Database
from lakeward.control.records import ArmVersion
from lakeward.storage.arms.postgres.merge import QUERIES
from lakeward.storage.arms.postgres.seen import visible_rows
from lakeward.storage.duck import Duck
from lakeward.storage.scans import KEYS
from lakeward.storage.staged_batch import key_columns
from lakeward.storage.table import TableRef
from lakeward.types.key_number import key_number_duckdb

MOST_KEYS = 200_000
"""For more keys than that, all rows are read: the statement names each."""

# In the index's own words. Rows that a later version has replaced are not in it: those are few, and found by theirs.
_KEYED = sql.SQL(
    "SELECT * FROM lakeward.dataset_rows WHERE dataset_id = {dataset_id} AND key = ANY ({numbers}::bigint[]) "
    "AND key IS NOT NULL AND coalesce(until, 0) = 0 AND version BETWEEN {first} AND {version} "
    "UNION ALL SELECT * FROM lakeward.dataset_rows WHERE dataset_id = {dataset_id} AND until IS NOT NULL "
    "AND until > {version} AND version BETWEEN {first} AND {version} AND key = ANY ({numbers}::bigint[])"
)


def rows_with_keys(
    database: Database, duck: Duck, table: TableRef, version: ArmVersion, keys: pa.Table
) -> sql.Composed:
    """Return the query of rows that are seen at a version, at least of those with one of the keys.

    Args:
        database: where the rows are.
        duck: computes the keys' numbers.
        table, version: whose rows, and at which.
        keys: the columns of the primary key.
    """
    identity: dict[str, Any] = {"dataset_id": table.dataset_id, "base": version.base_version}
    [row] = database.fetch(QUERIES["unnumbered"], identity)
    if keys.num_rows > MOST_KEYS or row["unnumbered"]:
        return visible_rows(table, version, None)
    with duck.session() as connection:
        connection.register(KEYS, keys)
        number = key_number_duckdb(key_columns(table.schema))
        numbers = connection.execute(f"SELECT DISTINCT {number} FROM {KEYS}").fetchall()
    return _KEYED.format(
        dataset_id=sql.Literal(table.dataset_id),
        numbers=sql.Literal("{" + ",".join(str(each) for (each,) in numbers) + "}"),
        first=sql.Literal(version.base_version),
        version=sql.Literal(version.version),
    )
