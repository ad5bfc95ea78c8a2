"""Arrow batches into Postgres by COPY in its binary format."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import psycopg
import pyarrow as pa
from pgpq import ArrowToPostgresBinaryEncoder
from pgpq.encoders import StringEncoderBuilder
from pgpq.schema import Jsonb
from psycopg import sql

from lakeward.errors import ValueRefused

DOCUMENT = "data"
"""The column of the JSON texts, which Postgres takes as jsonb."""


def copy_rows(
    connection: psycopg.Connection[Any],
    table: sql.Composable,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    begun: Callable[[], None],
) -> int:
    """Copy batches into the columns of a table that have their columns' names; return how many rows it took.

    Args:
        connection: inside a transaction.
        table: where to.
        schema: of the batches.
        batches: read one after the other.
        begun: called once the COPY has begun.

    Raises:
        ValueRefused: Postgres can't hold a value.
    """
    encoders = {
        field.name: ArrowToPostgresBinaryEncoder.infer_encoder(field)
        if field.name != DOCUMENT
        else StringEncoderBuilder.new_with_output(field, Jsonb())
        for field in schema
    }
    encoder = ArrowToPostgresBinaryEncoder.new_with_encoders(schema, encoders)
    statement = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT BINARY)").format(
        table, sql.SQL(", ").join(sql.Identifier(name) for name in schema.names)
    )
    rows = 0
    try:
        with connection.cursor().copy(statement) as copy:
            copy.write(encoder.write_header())
            begun()
            for batch in batches:
                copy.write(encoder.write_batch(batch))
                rows += batch.num_rows
            copy.write(encoder.finish())
    except psycopg.DataError as error:
        # Rows that another engine wrote have not been through the write edge.
        why = f"is refused by PostgreSQL: {error.diag.message_primary or error}"
        raise ValueRefused(f"a row {why}", safe="nothing was made visible", reason=why) from error
    return rows
