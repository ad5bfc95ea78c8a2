"""A Postgres table of JSONB documents, without any arm around it: what the types' forms are tested against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

import adbc_driver_postgresql.dbapi as adbc
import duckdb
import psycopg
import pyarrow as pa
from psycopg import sql

from lakeward.types.digest import Digest, postgres_digest_sql
from lakeward.types.jsonb import decode, encode_sql, read_columns
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema

ALL = sql.SQL("SELECT data FROM lakeward_documents")


def encoded(schema: Schema, table: pa.Table) -> list[str]:
    """Return the rows' JSON texts. The session's time zone is far from UTC, as a user's may be."""
    with _engine().cursor() as engine:
        engine.register("source", table)
        return [text for (text,) in engine.execute(f"SELECT {encode_sql(schema)} FROM source").fetchall()]


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    # Opening one takes longer than all that a test asks of it.
    connection = duckdb.connect()
    connection.execute("SET GLOBAL TimeZone = 'Asia/Kathmandu'")
    return connection


class Documents:
    """The table. `put` replaces all rows."""

    def __init__(self, connection: psycopg.Connection, reader: adbc.Connection) -> None:
        self.connection = connection
        self._reader = reader
        connection.execute("DROP TABLE IF EXISTS lakeward_documents")
        connection.execute("CREATE TABLE lakeward_documents (position bigserial, data jsonb NOT NULL)")

    @classmethod
    @contextmanager
    def open(cls, url: str) -> Iterator[Documents]:
        """Connect; both connections stay in the session's own time zone, far from UTC."""
        with psycopg.connect(url, autocommit=True) as connection, adbc.connect(url, autocommit=True) as reader:
            connection.execute("SET TimeZone = 'America/St_Johns'")
            yield cls(connection, reader)
            connection.execute("DROP TABLE lakeward_documents")

    def put(self, documents: Sequence[str]) -> None:
        """Store the documents, in order."""
        self.connection.execute("TRUNCATE lakeward_documents")
        with self.connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO lakeward_documents (data) VALUES (%s::jsonb)", [(document,) for document in documents]
            )

    def digest(self, schema: Schema) -> Digest:
        """Return the digest that Postgres computes."""
        row = self.connection.execute(postgres_digest_sql(schema, ALL)).fetchone()
        assert row is not None
        return Digest.of_row(row)

    def read(self, schema: Schema) -> pa.Table:
        """Return the rows as an arm reads them."""
        query = sql.SQL("SELECT {} FROM lakeward_documents ORDER BY position").format(
            read_columns(schema, schema.names)
        )
        with self._reader.cursor() as cursor:
            cursor.execute(query.as_string(None))
            batches = [decode(batch, schema) for batch in cursor.fetch_record_batch()]
        return pa.Table.from_batches(batches, arrow_schema(schema))
