"""The digest: an order-independent checksum of a dataset's rows, equal bit for bit from Postgres and from DuckDB.

Each row's business columns, in declared order, make one text (see `table.py` for each type's form). Its MD5 is taken as
a number of 128 bits, and the rows' high and low halves are each summed modulo 2^64. Sums, not XOR: two equal rows
must not cancel. Sums of parts add up, so that a write's digest is that of the rows it added less those it removed.

Column names are not part of the text: a rename leaves the digest as it is. Float and double, int and long share their
form, and decimals count without their scale, so a promotion leaves it as well.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Self

import duckdb
import pyarrow as pa
from psycopg import sql

from lakeward.errors import UsageError
from lakeward.types.forms import stored_column
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_schema, digest_pieces, digest_stored, joined

_MODULUS = 2**64


@dataclass(frozen=True)
class Digest:
    """Number of rows, and the sums modulo 2^64 of the high and low halves of their hashes.

    Digests of disjoint sets of rows add up, and a part can be taken away again.

    Example:
        >>> Digest(3, 7, 2**64 - 1) + Digest(1, 1, 2)
        Digest(count=4, high=8, low=1)
    """

    count: int
    high: int
    low: int

    def __add__(self, other: Digest) -> Digest:
        return Digest(self.count + other.count, (self.high + other.high) % _MODULUS, (self.low + other.low) % _MODULUS)

    def __sub__(self, other: Digest) -> Digest:
        return Digest(self.count - other.count, (self.high - other.high) % _MODULUS, (self.low - other.low) % _MODULUS)

    def __str__(self) -> str:
        return f"{self.count}:{self.high:016x}{self.low:016x}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `str()` wrote.

        Raises:
            UsageError: the text is no digest.
        """
        count, separator, hashes = text.partition(":")
        try:
            if separator and len(hashes) == 32:
                return cls(int(count), int(hashes[:16], 16), int(hashes[16:], 16))
        except ValueError:
            pass  # the same error as for a text of another shape
        raise UsageError(f"{text!r} is not a digest: expected COUNT:32 hexadecimal digits", value=text)

    @classmethod
    def of_row(cls, row: Iterable[object]) -> Self:
        """Read the one row that the digest's SQL returns."""
        count, high, low = (int(str(value)) for value in row)
        return cls(count, high % _MODULUS, low % _MODULUS)


EMPTY = Digest(0, 0, 0)
"""The digest of no rows."""


def row_text_duckdb(schema: Schema, relation: str | None = None) -> str:
    """Return the DuckDB expression of the canonical text of a row, of the relation so called if there are several."""
    prefix = f"{relation}." if relation is not None else ""
    names = [(column.type, prefix + duckdb_name(column.name)) for column in schema.columns]
    return joined([piece for type_, name in names for piece in digest_pieces(type_, name)])


def row_hash_duckdb(schema: Schema) -> str:
    """Return the DuckDB expression of a row's hash, a UHUGEINT: the MD5 of its text as a big-endian number."""
    # Not md5_number(), which takes the bytes in the other order: Postgres has no cheap way to turn them round.
    return f"CAST('0x' || md5({row_text_duckdb(schema)}) AS UHUGEINT)"


_SWAPS = ((8, 0x00FF00FF00FF00FF), (16, 0x0000FFFF0000FFFF), (32, 0x00000000FFFFFFFF))
"""Turns the bytes of 64 bits round: neighbours change places, then pairs of them, then halves. Cheaper than the number
of a text of hexadecimal digits, as long as only the halves are wanted."""


def duckdb_digest_sql(schema: Schema, source_sql: str, part: str | None = None) -> str:
    """Return the DuckDB query of the digest, one row for `Digest.of_row`.

    Args:
        schema: the business columns.
        source_sql: a query that yields at least those columns, in their DuckDB types. It comes from our own code.
        part: an expression over the source: one digest for each of its values, one row each, the value before it.
    """
    first, groups = ("", "") if part is None else ("part, ", " GROUP BY part")
    marked = "" if part is None else f"{part} AS part, "
    rows = f"SELECT {marked}md5_number({row_text_duckdb(schema)}) AS hash FROM ({source_sql}) AS source"
    # The number's first byte is its lowest one.
    halves = f"CAST(hash & {2**64 - 1}::UHUGEINT AS UBIGINT) AS high, CAST(hash >> 64 AS UBIGINT) AS low"
    rows = f"SELECT {first}{halves} FROM ({rows})"
    for bits, mask in _SWAPS:
        halves = ", ".join(
            f"(({half} & {mask}::UBIGINT) << {bits}) | (({half} >> {bits}) & {mask}::UBIGINT) AS {half}"
            for half in ("high", "low")
        )
        rows = f"SELECT {first}{halves} FROM ({rows})"
    return f"SELECT {first}count(*), coalesce(sum(high), 0), coalesce(sum(low), 0) FROM ({rows}) AS hashes{groups}"


def digest_batches(
    schema: Schema,
    batches: pa.RecordBatchReader | Iterable[pa.RecordBatch],
    *,
    threads: int = 1,
    connection: duckdb.DuckDBPyConnection | None = None,
) -> Digest:
    """Return the digest of Arrow batches in `arrow_schema(schema)`. Streams: memory does not grow with the rows.

    Args:
        schema: the business columns.
        batches: a reader, or batches; further columns are allowed in a reader.
        threads: how many threads may hash. The reader itself is read by one at a time.
        connection: a DuckDB connection to work on; it keeps its own number of threads.
    """
    reader = batches
    if not isinstance(reader, pa.RecordBatchReader):
        reader = pa.RecordBatchReader.from_batches(arrow_schema(schema), batches)
    with (connection or _engine(threads)).cursor() as engine:
        engine.register("lakeward_digest_rows", reader)
        try:
            (row,) = engine.execute(duckdb_digest_sql(schema, "FROM lakeward_digest_rows")).fetchall()
        finally:
            engine.unregister("lakeward_digest_rows")
    return Digest.of_row(row)


@cache
def _engine(threads: int) -> duckdb.DuckDBPyConnection:
    # Opening one takes longer than most digests; its cursors are safe to use from any thread.
    return duckdb.connect(config={"threads": threads})


def postgres_row_hash(schema: Schema, data: sql.Composable) -> sql.Composed:
    """Return the Postgres expression of one stored row's MD5, as 32 hexadecimal digits.

    Args:
        schema: the business columns.
        data: SQL of the row's document.
    """
    document = sql.Identifier("document")
    fields = [(column.type, stored_column(document, column.name)) for column in schema.columns]
    # The subquery unpacks the document once, and not for each column.
    return sql.SQL("(SELECT md5({text}) FROM (SELECT {data} #> '{{}}' AS document OFFSET '0') AS unpacked)").format(
        text=digest_stored(fields), data=data
    )


def postgres_digest_sql(
    schema: Schema, source: sql.Composable, data: str = "data", part: sql.Composable | None = None
) -> sql.Composed:
    """Return the Postgres query of the digest, one row for `Digest.of_row`.

    Postgres spreads it over parallel workers where the source allows that.

    Args:
        schema: the business columns.
        source: a query that yields the rows' documents as a jsonb column.
        data: the name of that column.
        part: an expression over the source: one digest for each of its values, one row each, the value before it.
    """
    column = sql.Identifier(data)
    fields = [(column_.type, stored_column(column, column_.name)) for column_ in schema.columns]
    marked = sql.SQL("") if part is None else sql.SQL("{} AS part, ").format(part)
    first, groups = (sql.SQL(text if part is not None else "") for text in ("part, ", " GROUP BY part"))
    # Each `OFFSET '0'` keeps the planner from copying an expression into every place that uses it. Quoted, because the
    # planner takes a bare 0, which is no bigint yet, for a real offset and then plans without parallel workers.
    # `#> '{}'` returns the document unpacked, once instead of once per column.
    return sql.SQL(
        "SELECT {first}count(*), coalesce(sum(hash::bit(64)::bigint), 0), "
        "coalesce(sum((hash << 64)::bit(64)::bigint), 0) "
        "FROM (SELECT {first}('x' || md5({text}))::bit(128) AS hash "
        "FROM (SELECT {marked}{data} #> '{{}}' AS {data} FROM ({source}) AS source OFFSET '0') AS documents "
        "OFFSET '0') AS hashes{groups}"
    ).format(text=digest_stored(fields), data=column, source=source, marked=marked, first=first, groups=groups)
