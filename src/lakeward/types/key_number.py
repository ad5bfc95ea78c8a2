"""The number by which the Postgres arm finds a row by its primary key: the key itself, or some bits of its hash.

Two keys may have the same number, so a match is confirmed on the values. Equal keys always have the same one, also
after a promotion of their columns' types (see `digest.py`). It is never null, or rows with one would look unnumbered.
"""

from __future__ import annotations

from psycopg import sql

from lakeward.types.forms import stored_column
from lakeward.types.quoting import duckdb_name
from lakeward.types.schema import Column
from lakeward.types.table import digest_pieces, digest_stored, joined

_INTEGERS = ("int", "long")

_DIGITS = 15
"""Hexadecimal digits of the hash: as many as a positive bigint holds."""


def key_number_duckdb(columns: tuple[Column, ...]) -> str:
    """Return the DuckDB expression of a key's number, a BIGINT, from columns that are named as in `columns`."""
    names = [duckdb_name(column.name) for column in columns]
    if len(columns) == 1 and columns[0].type.kind in _INTEGERS:
        return f"coalesce(CAST({names[0]} AS BIGINT), 0)"
    pieces = [piece for column, name in zip(columns, names, strict=True) for piece in digest_pieces(column.type, name)]
    return f"CAST('0x' || left(md5({joined(pieces)}), {_DIGITS}) AS BIGINT)"


def key_number_postgres(columns: tuple[Column, ...], data: sql.Composable) -> sql.Composable:
    """Return the Postgres expression of the number of a stored row's key.

    Args:
        columns: the key's.
        data: SQL of the row's document.
    """
    fields = [(column.type, stored_column(data, column.name)) for column in columns]
    if len(columns) == 1 and columns[0].type.kind in _INTEGERS:
        return sql.SQL("coalesce({}::bigint, 0)").format(fields[0][1].text)
    return sql.SQL("('x0' || left(md5({}), {}))::bit(64)::bigint").format(digest_stored(fields), sql.Literal(_DIGITS))
