"""Partition transforms of whole columns (Iceberg table spec, "Partition Transforms").

PyIceberg has them for one value at a time; for Arrow it needs a compiled package that Lakeward does without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyiceberg.transforms import (
    BucketTransform,
    DayTransform,
    HourTransform,
    IdentityTransform,
    MonthTransform,
    Transform,
    TruncateTransform,
    VoidTransform,
    YearTransform,
)
from pyiceberg.types import DecimalType

from lakeward.storage.arms.iceberg.murmur import hashes

_HOUR = 3_600_000_000
_DAY = 24 * _HOUR

_TIMES: dict[type[Transform[Any, Any]], Callable[[pa.Array], np.ndarray]] = {
    YearTransform: lambda array: _days(array).view("datetime64[D]").astype("datetime64[Y]").view(np.int64),
    MonthTransform: lambda array: _days(array).view("datetime64[D]").astype("datetime64[M]").view(np.int64),
    DayTransform: lambda array: _days(array),
    HourTransform: lambda array: np.floor_divide(_integers(array), _HOUR),
}

KNOWN: tuple[type[Transform[Any, Any]], ...] = (
    *_TIMES,
    IdentityTransform,
    BucketTransform,
    TruncateTransform,
    VoidTransform,
)
"""The transforms that `transformed` takes."""


def transformed(transform: Transform[Any, Any], column: pa.Array) -> pa.Array:
    """Return the partition value of each value of a column, in the form in which a manifest has it.

    Dates and times are numbers there: days, hours, months or years since 1970, or microseconds.

    Raises:
        ValueError: a value can't be truncated: the result does not fit its type.
    """
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if isinstance(transform, VoidTransform):
        return pa.nulls(len(column), pa.int32())
    if isinstance(transform, BucketTransform):
        found = (hashes(_numbers(column)) & np.int32(0x7FFFFFFF)) % np.int32(transform.num_buckets)
        return _like(column, found.astype(np.int32))
    if isinstance(transform, TruncateTransform):
        return _truncated(column, transform.width)
    of_time = _TIMES.get(type(transform))
    if of_time is not None:
        return _like(column, of_time(column).astype(np.int32))
    assert isinstance(transform, IdentityTransform), f"checked before: {transform}"
    return _numbers(column)


def _numbers(column: pa.Array) -> pa.Array:
    """Return dates and times as the integers that they are in memory, and other columns as they are."""
    if pa.types.is_date32(column.type):
        return column.cast(pa.int32())
    return column.cast(pa.int64()) if pa.types.is_temporal(column.type) else column


def _integers(column: pa.Array) -> np.ndarray:
    return np.asarray(pc.fill_null(_numbers(column).cast(pa.int64()), 0))


def _days(column: pa.Array) -> np.ndarray:
    numbers = _integers(column)
    return numbers if pa.types.is_date(column.type) else np.floor_divide(numbers, _DAY)


def _like(column: pa.Array, values: np.ndarray) -> pa.Array:
    """Return the values, null where the column is."""
    return pa.array(values, mask=np.asarray(column.is_null())) if column.null_count else pa.array(values)


def _truncated(column: pa.Array, width: int) -> pa.Array:
    type_ = column.type
    if pa.types.is_string(type_) or pa.types.is_large_string(type_):
        return pc.utf8_slice_codeunits(column, 0, width)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_):
        return pc.binary_slice(column, 0, width)
    if pa.types.is_decimal(type_):
        distinct = column.dictionary_encode()
        values = distinct.dictionary.to_pylist()
        step = TruncateTransform(width).transform(DecimalType(type_.precision, type_.scale))
        return pa.array([step(value) for value in values], type_).take(distinct.indices)
    numbers = _integers(column)
    found = numbers - np.mod(numbers, np.int64(width))
    least = np.iinfo(np.int32 if type_.bit_width == 32 else np.int64).min
    if (found > numbers).any() or (found < least).any():
        raise ValueError(f"{numbers.min()} truncated by {width} is less than the least {type_}")
    return _like(column, found).cast(type_)
