"""Marks rows of the Postgres arm as gone that are gone on another arm, found by their key and confirmed by their id."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from psycopg import sql

from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.errors import StorageError
from lakeward.storage.arm import WriteTask
from lakeward.storage.arms.postgres.copy import copy_rows
from lakeward.storage.duck import Duck
from lakeward.storage.sides import Difference
from lakeward.storage.staged_batch import key_columns
from lakeward.types.key_number import key_number_duckdb
from lakeward.types.schema import ROW_ID

# The quoted offset keeps the lookup a lookup, as in the keyed merge. Rows without a key number are found by their id
# alone, which has no index: only where the dataset has no key, or they are of before there were key numbers.
_MARK = sql.SQL(
    "UPDATE lakeward.dataset_rows SET until = {version} WHERE ctid = ANY (ARRAY("
    "SELECT held.place FROM pg_temp.lakeward_gone AS gone CROSS JOIN LATERAL ("
    "SELECT stored.ctid AS place FROM lakeward.dataset_rows AS stored "
    "WHERE stored.dataset_id = {dataset_id} AND stored.key = gone.key AND coalesce(stored.until, 0) = 0 "
    "AND stored.version BETWEEN {base} AND {parent} AND stored.row_id = gone.row_id OFFSET '0') AS held)) "
    "AND until IS NULL"
)
_MARK_BY_ID = sql.SQL(
    "UPDATE lakeward.dataset_rows AS stored SET until = {version} FROM pg_temp.lakeward_gone AS gone "
    "WHERE stored.dataset_id = {dataset_id} AND stored.version BETWEEN {base} AND {parent} AND stored.until IS NULL "
    "AND stored.row_id = gone.row_id"
)
_STAGE = "CREATE TEMPORARY TABLE lakeward_gone (row_id bigint NOT NULL, key bigint) ON COMMIT DROP"
_GONE = pa.schema([pa.field("row_id", pa.int64(), nullable=False), pa.field("key", pa.int64())])


def mark_gone(database: Database, duck: Duck, task: WriteTask, difference: Difference) -> None:
    """Mark the rows in one transaction.

    Args:
        database: where they are.
        duck: numbers their keys.
        task: the write, whose parent has the rows.
        difference: says which they are.

    Raises:
        StorageError: the arm has not all of them; nothing was marked.
    """
    held, version = task.parent, task.transaction.version
    assert held is not None, "rows are gone from a version"
    names = {
        "version": sql.Literal(version),
        "dataset_id": sql.Literal(task.table.dataset_id),
        "base": sql.Literal(held.base_version),
        "parent": sql.Literal(held.version),
    }
    with database.driver() as connection, connection.transaction():
        Ledger.hold(connection, task.transaction)
        connection.execute("SET LOCAL enable_nestloop = off")
        connection.execute(_STAGE)
        copy_rows(connection, sql.SQL("pg_temp.lakeward_gone"), _GONE, _numbered(duck, task, difference), _nothing)
        marked = connection.execute(_MARK.format(**names)).rowcount if task.table.schema.primary_key else 0
        if marked < difference.rows_gone:
            marked += connection.execute(_MARK_BY_ID.format(**names)).rowcount
        if marked != difference.rows_gone:
            raise StorageError(
                f"dataset {task.table.name}: the Postgres arm has {marked:,} of {difference.rows_gone:,} rows that are "
                "to be replaced",
                safe="the arm that serves the dataset was not touched",
                next_step=f"`lakeward verify {task.table.name}` compares the arms",
                dataset=task.table.name,
            )


def _numbered(duck: Duck, task: WriteTask, difference: Difference) -> Iterator[pa.RecordBatch]:
    schema = task.table.schema
    key = key_number_duckdb(key_columns(schema)) if schema.primary_key else "CAST(NULL AS BIGINT)"
    return iter(duck.stream(f"SELECT {ROW_ID}, {key} FROM gone", _GONE, {"gone": difference.gone()}))


def _nothing() -> None:
    """Nobody waits for the COPY to have begun."""
