"""The SQL forms of single values: JSON text and digest text, in DuckDB and in PostgreSQL.

`table.py` says which type has which form.

A DuckDB form is built from the type and the expression of a value, and is null where the value is. A PostgreSQL form is
built from the type and the place where the value is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from psycopg import sql

from lakeward.types.logical import MAX_DECIMAL_PRECISION, DecimalType, LogicalType
from lakeward.types.quoting import postgres_text


@dataclass(frozen=True)
class Code:
    """A piece of a text that is SQL; the other pieces are plain `str`."""

    sql: str


@dataclass(frozen=True)
class Stored:
    """Where a value is in a JSONB document: SQL that yields it as text, and as jsonb."""

    text: sql.Composable
    jsonb: sql.Composable
    nested: bool = False

    def field(self, name: str) -> Stored:
        """Return the place of a key of this object."""
        key = postgres_text(name)
        return Stored(
            sql.SQL("({}->>{})").format(self.jsonb, key),
            sql.SQL("({}->{})").format(self.jsonb, key),
            nested=True,
        )


def stored_column(data: sql.Composable, name: str) -> Stored:
    """Return the place of a column, given the SQL of the row's document."""
    place = Stored(data, data).field(name)
    return Stored(place.text, place.jsonb)


def plain(_type: LogicalType, value: str) -> str:
    """Return the text that DuckDB prints."""
    return f"CAST({value} AS VARCHAR)"


def quoted(text: Callable[[LogicalType, str], str]) -> Callable[[LogicalType, str], str]:
    """Return the JSON string of a text that needs no escapes."""
    return lambda type_, value: f"'\"' || {text(type_, value)} || '\"'"


def json_text(_type: LogicalType, value: str) -> str:
    """Return the JSON form that DuckDB writes, with escapes where needed."""
    return f"CAST(to_json({value}) AS VARCHAR)"


def digest(text: Callable[[LogicalType, str], str]) -> Callable[[LogicalType, str], list[str | Code]]:
    """Return the digest form that is the given text, which can hold no `;`."""
    return lambda type_, value: [Code(text(type_, value))]


def digest_stored(_type: LogicalType, stored: Stored) -> sql.Composable:
    """Return the stored text, or the empty one for a null."""
    # What `json` wrote is already one text per value, so it needs no cast here.
    return sql.SQL("coalesce({},'')").format(stored.text)


def digest_text(_type: LogicalType, value: str) -> list[str | Code]:
    """Return any text, after its length in bytes."""
    return [Code(f"strlen({value})"), ":", Code(value)]


def digest_stored_text(_type: LogicalType, stored: Stored) -> sql.Composable:
    """Return any stored text, after its length in bytes."""
    return sql.SQL("coalesce(octet_length({0})||':'||{0},':')").format(stored.text)


def digest_stored_json(_type: LogicalType, stored: Stored) -> sql.Composable:
    """Return the canonical text of a stored JSON value, after its length in bytes."""
    return sql.SQL("coalesce(octet_length({0})||':'||{0},':')").format(json_value_text(stored))


# --- float and double: their IEEE 754 double bits; a float is widened, so that a promotion changes nothing


def float_json(_type: LogicalType, value: str) -> str:
    """Return a JSON number, or a string for the values that JSON has no number for."""
    # DuckDB prints the shortest decimal that reads back as the same double. PostgreSQL keeps it as an exact numeric.
    wide = f"CAST({value} AS DOUBLE)"
    return (
        f"CASE WHEN isfinite({wide}) AND ({wide} <> 0 OR NOT signbit({wide})) THEN CAST({wide} AS VARCHAR) "
        f"WHEN isnan({wide}) THEN '\"NaN\"' WHEN {wide} = 0 THEN '\"-0.0\"' "
        f"WHEN {wide} > 0 THEN '\"Infinity\"' WHEN {wide} < 0 THEN '\"-Infinity\"' END"
    )


def float_digest(_type: LogicalType, value: str) -> list[str | Code]:
    """Return the bits of the value as a double."""
    # Adding 0 makes 0.0 of -0.0. Base64, because hexadecimal differs in case between the engines.
    wide = f"CAST({value} AS DOUBLE)"
    return [Code(f"to_base64(CAST(CAST(if(isnan({wide}), CAST('nan' AS DOUBLE), {wide} + 0) AS BIT) AS BLOB))")]


def float_digest_stored(_type: LogicalType, stored: Stored) -> sql.Composable:
    """Return the bits of the stored value as a double."""
    return sql.SQL("coalesce(encode(float8send({}::float8+0),'base64'),'')").format(stored.text)


# --- decimal: digits with a leading zero; the digest fills up to 38 places, so that 1.1 equals 1.10


def decimal_name(type_: LogicalType) -> str:
    """Return DuckDB's name of the type."""
    type_ = cast(DecimalType, type_)
    return f"DECIMAL({type_.precision},{type_.scale})"


def decimal_text(type_: LogicalType, value: str) -> str:
    """Return plain notation with all digits of the scale."""
    type_ = cast(DecimalType, type_)
    exact = f"CAST({value} AS {decimal_name(type_)})"
    if type_.scale < type_.precision:
        return f"CAST({exact} AS VARCHAR)"
    # DuckDB prints decimal(2,2) 0.5 as .50; one more digit before the point brings the zero.
    if type_.precision < MAX_DECIMAL_PRECISION:
        return f"CAST(CAST({exact} AS DECIMAL({type_.precision + 1},{type_.scale})) AS VARCHAR)"
    return f"if({exact} < 0, '-0' || CAST(-{exact} AS VARCHAR), '0' || CAST({exact} AS VARCHAR))"


def decimal_fill(type_: LogicalType) -> str:
    """Return the zeros that are missing to 38 places."""
    scale = cast(DecimalType, type_).scale
    return ("" if scale else ".") + "0" * (MAX_DECIMAL_PRECISION - scale)


# --- instants: ISO text with exactly six decimals, in UTC


def timestamp_text(_type: LogicalType, value: str) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.ffffff`."""
    return f"strftime({value}, '%Y-%m-%dT%H:%M:%S.%f')"


def timestamptz_text(_type: LogicalType, value: str) -> str:
    """Return `YYYY-MM-DDTHH:MM:SS.ffffffZ`."""
    # Through microseconds, because DuckDB prints a TIMESTAMPTZ in the session's time zone.
    return f"strftime(make_timestamp(epoch_us({value})), '%Y-%m-%dT%H:%M:%S.%fZ')"


# --- uuid


def uuid_text(_type: LogicalType, value: str) -> str:
    """Return the lower-case form 8-4-4-4-12, also of the 16 bytes that some readers of Parquet make of it."""
    return f"CAST(CAST({value} AS UUID) AS VARCHAR)"


# --- binary: base64; an equals sign before it tells the empty value from null in the digest


def binary_text(_type: LogicalType, value: str) -> str:
    """Return base64."""
    return f"to_base64({value})"


def binary_digest(_type: LogicalType, value: str) -> list[str | Code]:
    """Return base64 after an equals sign."""
    return [Code(f"'=' || to_base64({value})")]


def binary_digest_stored(_type: LogicalType, stored: Stored) -> sql.Composable:
    """Return the stored base64 after an equals sign."""
    return sql.SQL("coalesce('='||{},'')").format(stored.text)


# --- json: a JSON value of its own in the document


def json_value_text(stored: Stored) -> sql.Composable:
    """Return the JSON text of a stored json value; inside a list or struct it is kept as text."""
    # Not ->>, which takes the quotes off a string and makes SQL's null of JSON's.
    return stored.text if stored.nested else sql.SQL("{}::text").format(stored.jsonb)
