"""Rows as JSONB documents: Arrow → JSON text (by DuckDB) → jsonb → text columns → the same Arrow again.

A null column has no key in the document. The forms of the values are in `table.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from itertools import accumulate
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from psycopg import sql

from lakeward.errors import StorageError
from lakeward.types.forms import stored_column
from lakeward.types.logical import ListType, LogicalType, StructType
from lakeward.types.quoting import duckdb_name, postgres_name
from lakeward.types.schema import Schema
from lakeward.types.table import arrow_type, object_json, rule_of


def encode_sql(schema: Schema) -> str:
    """Return the DuckDB expression of one JSON document per row, from columns in their DuckDB types."""
    return object_json(
        {column.name: rule_of(column.type).json(column.type, duckdb_name(column.name)) for column in schema.columns}
    )


def read_columns(schema: Schema, names: Sequence[str], data: sql.Composable | None = None) -> sql.Composable:
    """Return a Postgres select list of the named columns as text, for `decode`.

    Args:
        schema: the dataset's columns.
        names: the columns to read, in the order in which they are wanted.
        data: SQL of the jsonb document, the column `data` unless given. Where documents are wide, select from a
            subquery with `unpacked`.

    Raises:
        SchemaError: a column that there is not.
    """
    document = data or sql.Identifier("data")
    reads = [rule_of(schema.column(name).type).read(stored_column(document, name)) for name in names]
    return sql.SQL(", ").join(
        sql.SQL("{} AS {}").format(read, postgres_name(name)) for read, name in zip(reads, names, strict=True)
    )


def unpacked(data: sql.Composable) -> sql.Composable:
    """Return SQL of the same jsonb value, read from its compressed or out-of-line storage once.

    Each `->>` on a stored document of more than 2 kB unpacks it again. Use it in a subquery that ends in `OFFSET '0'`,
    or the planner copies it into each of them.
    """
    return sql.SQL("{} #> '{{}}'").format(data)


def decode(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """Return a batch of `read_columns` in the exact Arrow types of the schema.

    Columns that are not the schema's come back as they are, and so do columns that have their type already.

    Raises:
        StorageError: a stored value is not of its column's type. Fields: `column`, `value`, `row` (in the batch,
            from 0).
    """
    types = {column.name: column.type for column in schema.columns}
    fields: list[pa.Field] = []
    columns: list[pa.Array] = []
    for field, array in zip(batch.schema, batch.columns, strict=True):
        type_ = types.get(field.name)
        if type_ is not None:
            array = _column(array, type_, field.name)
            field = pa.field(field.name, array.type)
        fields.append(field)
        columns.append(array)
    return pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


def _column(array: pa.Array, type_: LogicalType, name: str) -> pa.Array:
    if array.type == arrow_type(type_):
        return array
    try:
        return _parsed(array, type_)
    except (pa.ArrowInvalid, ValueError, duckdb.Error) as error:
        row = _first_bad(array, type_)
        value = array[row].as_py()
        raise StorageError(
            f"column {name!r}: the stored value {value!r} is not a {type_}",
            safe="nothing was changed",
            column=name,
            row=row,
            value=value,
        ) from error


def _first_bad(array: pa.Array, type_: LogicalType) -> int:
    """Return the index of the first value that can't be parsed; there is one."""
    good, bad = 0, len(array)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            _parsed(array.slice(good, middle - good), type_)
            good = middle
        except (pa.ArrowInvalid, ValueError, duckdb.Error):
            bad = middle
    return good


def _parsed(texts: pa.Array, type_: LogicalType) -> pa.Array:
    if isinstance(type_, ListType | StructType):
        return _leaves(_shape(texts, type_), type_)
    parse = rule_of(type_).parse
    assert parse is not None
    return parse(texts, arrow_type(type_))


def _shape(texts: pa.Array, type_: LogicalType) -> pa.Array:
    """Return JSON texts as Arrow lists and structs whose leaves are texts still."""
    with _engine().cursor() as engine:
        engine.register("lakeward_cells", pa.table({"cell": texts}))
        # Leaves are VARCHAR, so that DuckDB hands on a number's digits and a string's content.
        structure = json.dumps(_structure(type_), ensure_ascii=False)
        query = "SELECT from_json(cell, $1) AS value FROM lakeward_cells"
        result = engine.sql(query, params=[structure]).to_arrow_table()["value"]
        engine.unregister("lakeward_cells")
    shaped = result.combine_chunks() if result.num_chunks != 1 else result.chunk(0)
    if shaped.null_count != texts.null_count:
        raise ValueError("not a JSON value of the column's shape")
    return shaped


def _structure(type_: LogicalType) -> Any:
    if isinstance(type_, ListType):
        return [_structure(type_.element)]
    if isinstance(type_, StructType):
        return {field.name: _structure(field.type) for field in type_.fields}
    return "VARCHAR"


def _leaves(array: pa.Array, type_: LogicalType) -> pa.Array:
    """Parse the leaves of nested texts."""
    if isinstance(type_, ListType):
        lengths = pc.fill_null(pc.list_value_length(array), 0).to_pylist()
        offsets = pa.array(accumulate(lengths, initial=0), pa.int32())
        values = _leaves(pc.list_flatten(array), type_.element)
        return pa.ListArray.from_arrays(offsets, values, type=arrow_type(type_), mask=array.is_null())
    if isinstance(type_, StructType):
        parts = [_leaves(part, field.type) for part, field in zip(array.flatten(), type_.fields, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(arrow_type(type_)), mask=array.is_null())
    return _parsed(array, type_)


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    # Opening one takes longer than most batches; its cursors are safe to use from any thread.
    return duckdb.connect(config={"threads": 1})
