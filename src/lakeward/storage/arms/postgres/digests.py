"""Digests of rows of the Postgres arm, computed inside Postgres."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from lakeward.control.db import Database
from lakeward.errors import StorageError
from lakeward.storage.table import TableRef
from lakeward.types.digest import Digest, postgres_digest_sql


def digest_of(database: Database, table: TableRef, rows: sql.Composable) -> Digest:
    """Return the digest of what a query of `dataset_rows` gives."""
    return Digest.of_row(_fetch(database, table, postgres_digest_sql(table.schema, rows))[0])


def part_digests_of(database: Database, table: TableRef, rows: sql.Composable, width: int) -> dict[int, Digest]:
    """Return the digests of the parts that have rows, by `row_index / width`."""
    part = sql.SQL("row_index / {}").format(sql.Literal(width))
    found = _fetch(database, table, postgres_digest_sql(table.schema, rows, part=part))
    return {int(number): Digest.of_row(sums) for number, *sums in found}


def _fetch(database: Database, table: TableRef, statement: sql.Composed) -> list[tuple[Any, ...]]:
    try:
        with database.driver() as connection, connection.transaction():
            # For this transaction only, so that it works behind a pooler. A hash of every row is worth two workers even
            # on a table that the planner thinks small.
            connection.execute("SET LOCAL max_parallel_workers_per_gather = 2")
            return connection.execute(statement).fetchall()
    except psycopg.DataError as error:
        raise StorageError(
            f"dataset {table.name}: a stored value is not of its column's type: {str(error).splitlines()[0]}",
            safe="nothing was changed",
            next_step=f"`lakeward dataset preview {table.name}` names the column and the value",
            dataset=table.name,
        ) from error
