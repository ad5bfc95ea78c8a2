"""The nearest logical type of an Arrow type, for inputs whose columns nobody declared."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from lakeward.errors import SchemaError
from lakeward.types.logical import (
    MAX_DECIMAL_PRECISION,
    SIMPLE_TYPES,
    LogicalType,
    decimal,
    list_of,
    simple,
    struct_of,
)


def logical_type(type_: pa.DataType) -> LogicalType:
    """Return the logical type that holds every value of an Arrow type, the nearest one.

    Raises:
        SchemaError: there is none, naming the Arrow type: durations, intervals, maps, unions, a column of nulls only,
            decimals of more than 38 digits.
    """
    types = pa.types
    if isinstance(type_, pa.BaseExtensionType):
        found = "uuid" if isinstance(type_, pa.UuidType) else "json" if isinstance(type_, pa.JsonType) else None
    elif types.is_dictionary(type_) or types.is_run_end_encoded(type_):
        return logical_type(type_.value_type)
    elif _is_list(type_):
        return list_of(logical_type(type_.value_type))
    elif types.is_struct(type_) and type_.num_fields:
        return struct_of({field.name: logical_type(field.type) for field in type_})
    elif types.is_decimal(type_):
        # A negative scale stands for zeros before the point.
        precision, scale = type_.precision - min(type_.scale, 0), max(type_.scale, 0)
        if precision <= MAX_DECIMAL_PRECISION and scale <= precision:
            return decimal(precision, scale)
        found = None
    elif types.is_uint64(type_):
        return decimal(20, 0)
    else:
        found = next((kind for is_kind, kind in _NEAREST if is_kind(type_)), None)
    if found is None:
        raise SchemaError(
            f"Arrow type {type_} has no logical type",
            next_step="cast the column in the query to one of " + ", ".join((*SIMPLE_TYPES, "decimal(p,s)")),
            type=str(type_),
        )
    return simple(found)


def _is_list(type_: pa.DataType) -> bool:
    types = pa.types
    kinds = (types.is_list, types.is_large_list, types.is_fixed_size_list, types.is_list_view, types.is_large_list_view)
    return any(is_kind(type_) for is_kind in kinds)


_NEAREST: tuple[tuple[Callable[[pa.DataType], bool], str], ...] = (
    (pa.types.is_boolean, "boolean"),
    (lambda type_: (pa.types.is_integer(type_) and type_.bit_width < 32) or pa.types.is_int32(type_), "int"),
    (pa.types.is_integer, "long"),
    (lambda type_: pa.types.is_floating(type_) and type_.bit_width < 64, "float"),
    (pa.types.is_floating, "double"),
    (lambda type_: pa.types.is_string(type_) or pa.types.is_large_string(type_), "string"),
    (pa.types.is_string_view, "string"),
    (lambda type_: pa.types.is_binary(type_) or pa.types.is_large_binary(type_), "binary"),
    (lambda type_: pa.types.is_fixed_size_binary(type_) or pa.types.is_binary_view(type_), "binary"),
    (pa.types.is_date, "date"),
    (pa.types.is_time, "time"),
    (lambda type_: pa.types.is_timestamp(type_) and type_.tz is None, "timestamp"),
    (pa.types.is_timestamp, "timestamptz"),
)
