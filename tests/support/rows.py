"""Hypothesis strategies for schemas and rows of every logical type, with the values that have hurt somebody before."""

from __future__ import annotations

import datetime as dt
import json
import struct
from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from lakeward.types.json_text import canonical_json
from lakeward.types.logical import (
    SIMPLE_TYPES,
    DecimalType,
    ListType,
    LogicalType,
    StructType,
    decimal,
    list_of,
    simple,
    struct_of,
)
from lakeward.types.schema import IDENTITY_COLUMNS, Schema, name_key
from lakeward.types.table import arrow_schema, arrow_type

ODD_NAMES = (
    'q"x',
    "a'b",
    "a.b",
    "two words",
    "a/b",
    "a\\b",
    'a\\"b',
    'x"; drop table t; --',
    "100 %",
    "%s",
    "1st",
    "1",
    "select",
    "e",
    "data",
    "$1",
    "{}",
    "{0}",
    "?",
    "😀",
    "é",
)
"""Column and field names that some quoting gets wrong."""

_CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")

texts = st.one_of(
    st.text(_CHARACTERS, max_size=20),
    st.sampled_from(
        ["", ";", ":", "~", "null", "NULL", "NaN", '"', "\\", "\\x00", "\n\t\r\x01\x7f", "0:", "s1:a;", "😀é ", "%s"]
    ),
)
"""Text as it may be stored: any characters but NUL and half surrogate pairs."""

names = st.one_of(
    st.sampled_from(ODD_NAMES),
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
        lambda name: bool(name.strip()) and name not in IDENTITY_COLUMNS
    ),
)
"""Names of columns and struct fields."""

doubles = st.one_of(
    st.floats(),
    st.sampled_from(
        [0.0, -0.0, 5e-324, -5e-324, 1e21, 1e-7, 0.1 + 0.2, 1.7976931348623157e308, 2.2250738585072014e-308]
    ),
)

_json_trees = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-(10**30), 10**30),
        st.floats(allow_nan=False, allow_infinity=False),
        texts,
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)

json_texts = _json_trees.map(json.dumps).map(canonical_json)
"""Canonical JSON texts, also the `null` that is a value."""


def _named(fields: Sequence[tuple[str, LogicalType]]) -> dict[str, LogicalType]:
    """Drop the later of two names that count as the same."""
    seen: dict[str, tuple[str, LogicalType]] = {}
    for name, type_ in fields:
        seen.setdefault(name_key(name), (name, type_))
    return dict(seen.values())


decimals = st.integers(1, 38).flatmap(
    lambda precision: st.integers(0, precision).map(lambda scale: decimal(precision, scale))
)

scalar_types: st.SearchStrategy[LogicalType] = st.one_of(
    st.sampled_from([simple(kind) for kind in SIMPLE_TYPES]), decimals
)

types: st.SearchStrategy[LogicalType] = st.recursive(
    scalar_types,
    lambda inner: st.one_of(
        inner.map(list_of),
        st.lists(st.tuples(names, inner), min_size=1, max_size=3).map(lambda fields: struct_of(_named(fields))),
    ),
    max_leaves=4,
)
"""Every logical type, nested too."""


@st.composite
def schemas(draw: st.DrawFn, max_columns: int = 6) -> Schema:
    """A schema without a key."""
    return Schema.declare(_named(draw(st.lists(st.tuples(names, types), min_size=1, max_size=max_columns))))


def _single(value: float) -> float:
    return float(struct.unpack("f", struct.pack("f", value))[0])


_SIMPLE_VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "boolean": st.booleans(),
    "int": st.integers(-(2**31), 2**31 - 1),
    "long": st.one_of(st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**53 + 1, 2**63 - 1, -(2**63)])),
    "float": st.one_of(st.floats(width=32), st.sampled_from([0.1, -0.0, 1e-45, 3.4028234663852886e38]).map(_single)),
    "double": doubles,
    "string": texts,
    "binary": st.binary(max_size=10),
    "uuid": st.uuids().map(lambda value: value.bytes),
    "date": st.dates(),
    "time": st.times(),
    "timestamp": st.datetimes(),
    "timestamptz": st.datetimes(timezones=st.just(dt.UTC)),
    "json": json_texts,
}


def values(type_: LogicalType) -> st.SearchStrategy[Any]:
    """Values of a type, and null, as Python objects that `arrow_table` takes."""
    if isinstance(type_, DecimalType):
        limit = 10**type_.precision - 1
        plain: st.SearchStrategy[Any] = st.one_of(st.integers(-limit, limit), st.sampled_from([0, limit, -limit])).map(
            lambda digits: Decimal((digits < 0, tuple(map(int, str(abs(digits)))), -type_.scale))
        )
    elif isinstance(type_, ListType):
        plain = st.lists(values(type_.element), max_size=3)
    elif isinstance(type_, StructType):
        plain = st.fixed_dictionaries({field.name: values(field.type) for field in type_.fields})
    else:
        plain = _SIMPLE_VALUES[type_.kind]
    return st.one_of(st.none(), plain, plain, plain)


def rows(schema: Schema, max_size: int = 8) -> st.SearchStrategy[list[dict[str, Any]]]:
    """Rows of a schema."""
    row = st.fixed_dictionaries({column.name: values(column.type) for column in schema.columns})
    return st.lists(row, max_size=max_size)


@st.composite
def tables(draw: st.DrawFn, max_columns: int = 6, max_rows: int = 8) -> tuple[Schema, pa.Table]:
    """A schema with rows."""
    schema = draw(schemas(max_columns))
    return schema, arrow_table(schema, draw(rows(schema, max_rows)))


def arrow_table(schema: Schema, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
    """Return rows as an Arrow table in the exact types of the schema."""
    target = arrow_schema(schema)
    columns = [_array([row[column.name] for row in rows], column.type) for column in schema.columns]
    return pa.table(columns, schema=target)


def _array(items: Sequence[Any], type_: LogicalType) -> pa.Array:
    """Return an Arrow array; by hand where types are nested, because Arrow makes no uuids inside of them."""
    target = arrow_type(type_)
    missing = pa.array([item is None for item in items], pa.bool_())
    if isinstance(type_, ListType):
        offsets = accumulate((len(item or ()) for item in items), initial=0)
        elements = _array([element for item in items for element in item or ()], type_.element)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=target, mask=missing)
    if isinstance(type_, StructType):
        fields = [_array([(item or {}).get(field.name) for item in items], field.type) for field in type_.fields]
        return pa.StructArray.from_arrays(fields, fields=list(target), mask=missing)
    return pa.array(items, target)
