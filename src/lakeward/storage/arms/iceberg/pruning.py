"""Leaves out data files that can hold no key of a batch, by the bounds of the key columns in the manifests."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import duckdb
import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import FileScanTask
from pyiceberg.types import PrimitiveType

from lakeward.storage.duck import given
from lakeward.storage.staged_batch import BATCH, alias
from lakeward.types.schema import Column
from lakeward.types.table import arrow_type

_BOUNDS = "file_bounds"
_COUNTED = ("int", "long")
_INSTANTS = ("date", "time", "timestamp", "timestamptz")


def files_with_keys(
    connection: duckdb.DuckDBPyConnection,
    physical: IcebergSchema,
    tasks: Sequence[FileScanTask],
    keys: Sequence[Column],
) -> list[FileScanTask]:
    """Return the files that can hold a key of the batch.

    A file stays if for every key column some key of the batch lies within its bounds, or it has none. Bounds of text
    may be cut short, but then they are wider than the values.

    Args:
        connection: where the batch is.
        physical: the table's columns.
        tasks: the files.
        keys: the key columns.
    """
    left = list(tasks)
    for column in keys:
        if not left:
            break
        bounds = [_bounds(task, column, physical) for task in left]
        kept = _within(connection, column, [bound for bound in bounds if bound is not None])
        # `kept` says of each file that has bounds, in order, whether it stays.
        verdicts = iter(kept)
        left = [task for task, bound in zip(left, bounds, strict=True) if bound is None or next(verdicts)]
    return left


_Bound = tuple[object, object]


def _within(connection: duckdb.DuckDBPyConnection, column: Column, bounds: list[_Bound]) -> list[bool]:
    """Say of each pair of bounds whether a key of the batch lies between."""
    if not bounds:
        return []
    table = pa.table(
        {
            "number": pa.array(range(len(bounds)), pa.int64()),
            "low": _array([low for low, _ in bounds], column),
            "high": _array([high for _, high in bounds], column),
        }
    )
    key = alias(column)
    # The smallest key that is not below the file must not be above it: one pass over sorted keys, for all files.
    nearest = (
        f"SELECT f.number, k.key <= f.high AS inside FROM {_BOUNDS} AS f "
        f"ASOF LEFT JOIN (SELECT {key} AS key FROM {BATCH}) AS k ON f.low <= k.key"
    )
    with given(connection, {_BOUNDS: table}):
        found = connection.execute(f"SELECT coalesce(inside, false) FROM ({nearest}) ORDER BY number").fetchall()
    return [inside for (inside,) in found]


def _bounds(task: FileScanTask, column: Column, physical: IcebergSchema) -> _Bound | None:
    low = (task.file.lower_bounds or {}).get(column.field_id)
    high = (task.file.upper_bounds or {}).get(column.field_id)
    if low is None or high is None:
        return None
    return _value(low, column, physical), _value(high, column, physical)


def _value(data: bytes, column: Column, physical: IcebergSchema) -> object:
    """Decode a bound (Iceberg spec, "Binary single-value serialization"), as `_array` takes it."""
    kind = column.type.kind
    if kind in (*_COUNTED, *_INSTANTS):
        # Of files from before an int became a long, in four bytes.
        return int.from_bytes(data, "little", signed=True)
    if kind in ("uuid", "binary"):
        return data
    type_ = physical.find_field(column.field_id).field_type
    assert isinstance(type_, PrimitiveType), "a key is no list or struct"
    value = from_bytes(type_, data)
    assert isinstance(value, str | bool | Decimal), f"{column.type} is no type of a key"
    return value


def _array(values: list[object], column: Column) -> pa.Array:
    type_ = arrow_type(column.type)
    if column.type.kind in _INSTANTS:
        return pa.array(values, pa.int32() if pa.types.is_date32(type_) else pa.int64()).view(type_)
    if isinstance(type_, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type_, pa.array(values, type_.storage_type))
    return pa.array(values, type_)
