"""Python values → the exact Arrow type of a logical type, without loss, or a refusal by name.

Arrow's own conversion of Python objects is too kind: it takes 1.0 for an integer, drops a zone, reads bytes as text.
So each logical type names the Python types that Arrow converts right; a column of only those goes straight through,
any other value is first brought into one of them, or refused.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa

from lakeward.errors import ValueRefused
from lakeward.types.arrow_values import exact, lists, structs
from lakeward.types.json_text import canonical_json, json_of
from lakeward.types.logical import DecimalType, ListType, LogicalType, StructType
from lakeward.types.refusal import Place
from lakeward.types.table import arrow_type


class BatchTooLarge(Exception):
    """The values of one column are more than the 2 GiB that an Arrow array of text can hold; fewer rows may fit."""


def column_of(values: Sequence[object], type_: LogicalType, place: Place) -> pa.Array:
    """Return Python values as an array of the Arrow type of `type_`.

    Takes, besides None (and pandas' NaT and NA): bool; integers (not bool, not float) for int, long, decimal, and for
    float and double if exact; float; finite Decimal without rounding; str; bytes-like; UUID or its canonical text; date
    (not datetime); time without zone; datetime without zone for timestamp and with one for timestamptz; JSON text, or
    dict, list and number, for json; list or tuple; a mapping with exactly the struct's fields. NumPy's scalars count as
    the Python type that they stand for.

    Raises:
        ValueRefused: a value of another type, or one that does not fit.
        BatchTooLarge: see there.
    """
    if isinstance(type_, ListType):
        return _lists(values, type_, place)
    if isinstance(type_, StructType):
        return _structs(values, type_, place)
    if type_.kind == "json":
        return _array([_json_text(value, index, place) for index, value in enumerate(values)], pa.string())
    if not _is_direct(values, type_.kind):
        values = _brought(values, type_, place)
    arrow = _INTAKE.get(type_.kind) or arrow_type(type_)
    try:
        if isinstance(type_, DecimalType) and _needs_own_decimals(values):
            values = _scaled(values, type_, place)
        array = _array(values, arrow)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        index = next((index for index, value in enumerate(values) if not _fits(value, arrow)), -1)
        if index < 0:
            raise
        half_pair = isinstance(values[index], str)
        raise place.refuse(
            index, values[index], "has half a surrogate pair" if half_pair else f"does not fit {type_}"
        ) from None
    return exact(array, type_, place)


def _array(values: Sequence[object], arrow: pa.DataType) -> pa.Array:
    array = pa.array(values, type=arrow)
    if isinstance(array, pa.ChunkedArray):
        raise BatchTooLarge
    return array


def _fits(value: object, arrow: pa.DataType) -> bool:
    try:
        pa.array([value], type=arrow)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, UnicodeEncodeError):
        return False
    return True


_NONE = type(None)

_DIRECT: dict[str, frozenset[type]] = {
    "boolean": frozenset({_NONE, bool}),
    "int": frozenset({_NONE, int}),
    "long": frozenset({_NONE, int}),
    "float": frozenset({_NONE, float}),
    "double": frozenset({_NONE, float}),
    "decimal": frozenset({_NONE, Decimal, int}),
    "string": frozenset({_NONE, str}),
    "binary": frozenset({_NONE, bytes}),
    "uuid": frozenset({_NONE}),
    "date": frozenset({_NONE, date}),
    "time": frozenset({_NONE, time}),
    "timestamp": frozenset({_NONE, datetime}),
    "timestamptz": frozenset({_NONE, datetime}),
}
"""The exact Python types (no subclasses) that Arrow converts right."""

_INTAKE: dict[str, pa.DataType] = {"float": pa.float64(), "uuid": pa.binary(16)}
"""The Arrow type to build from Python values, where it is not the final one."""


def _is_direct(values: Sequence[object], kind: str) -> bool:
    if not set(map(type, values)) <= _DIRECT[kind]:
        return False
    if kind in ("time", "timestamp", "timestamptz"):
        moments: Sequence[Any] = values
        # By id, because a zone class of the user's need not be hashable.
        zones = {id(moment.tzinfo): moment.tzinfo for moment in moments if moment is not None}.values()
        if kind == "timestamptz":
            # Arrow cuts a zone's offset to whole seconds, and a zone class of the user's may say None.
            return all(zone is UTC or type(zone) is ZoneInfo for zone in zones)
        return all(zone is None for zone in zones)
    return True


def _brought(values: Sequence[object], type_: LogicalType, place: Place) -> list[object]:
    """Return the values as the types that Arrow converts right."""
    bring = _BRING[type_.kind]
    result: list[object] = []
    for index, value in enumerate(values):
        if value is None or _is_pandas_null(value):
            result.append(None)
            continue
        try:
            result.append(bring(value))
        except ValueError as error:
            raise place.refuse(index, value, str(error)) from None
        except TypeError:
            raise place.refuse(index, value, f"is a {type(value).__name__}, not a {type_}") from None
    return result


def _is_pandas_null(value: object) -> bool:
    # By name, because pandas need not be installed.
    kind = type(value)
    return kind.__name__ in ("NaTType", "NAType") and kind.__module__.startswith("pandas.")


def _boolean(value: object) -> bool:
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise TypeError


def _int(value: object) -> int:
    if isinstance(value, int | np.integer) and not isinstance(value, bool):
        return int(value)
    raise TypeError


def _float(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise TypeError
    try:
        result = float(value)
    except OverflowError:
        raise ValueError("is not exact as double") from None
    if result != value and value == value:
        raise ValueError("is not exact as double")
    return result


def _decimal(value: object) -> int | Decimal:
    return value if isinstance(value, Decimal) else _int(value)


def _string(value: object) -> str:
    if isinstance(value, str):
        return str.__str__(value)
    raise TypeError


def _binary(value: object) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    raise TypeError


def _uuid(value: object) -> bytes:
    if isinstance(value, UUID):
        return value.bytes
    if not isinstance(value, str):
        raise TypeError
    try:
        result = UUID(value)
    except ValueError:
        result = None
    if result is None or str(result) != value.lower():
        raise ValueError("is not a uuid in the form 8-4-4-4-12")
    return result.bytes


def _date(value: object) -> date:
    if isinstance(value, date) and not isinstance(value, datetime):
        return value
    raise TypeError


def _time(value: object) -> time:
    if not isinstance(value, time):
        raise TypeError
    if value.tzinfo is not None:
        raise ValueError("has a zone, which a time does not keep")
    return value


def _datetime(value: object) -> datetime:
    if not isinstance(value, datetime):
        raise TypeError
    if getattr(value, "nanosecond", 0):
        raise ValueError("has nanoseconds, which are not kept")
    return value


def _timestamp(value: object) -> datetime:
    moment = _datetime(value)
    if moment.tzinfo is not None:
        raise ValueError("has a zone, but the column is a timestamp without one")
    return moment


def _timestamptz(value: object) -> datetime:
    moment = _datetime(value)
    if moment.utcoffset() is None:
        raise ValueError("has no zone, but the column is a timestamptz")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("is outside the years 1 to 9999") from None


_BRING: dict[str, Callable[[object], object]] = {
    "boolean": _boolean,
    "int": _int,
    "long": _int,
    "float": _float,
    "double": _float,
    "decimal": _decimal,
    "string": _string,
    "binary": _binary,
    "uuid": _uuid,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
}


def _needs_own_decimals(values: Sequence[object]) -> bool:
    """Return whether Arrow may convert one of the decimals wrongly.

    Its parser wraps around in the 128 bits: it reads 6.9007070200E-30 as 0.0 in decimal(5,1) without an error. Seen
    only with an exponent or with more than 38 characters.
    """
    texts = [str(value) for value in values if type(value) is Decimal]
    return any(map((38).__lt__, map(len, texts))) or "E" in ",".join(texts)


def _scaled(values: Sequence[object], type_: DecimalType, place: Place) -> list[object]:
    result: list[object] = []
    for index, value in enumerate(values):
        if isinstance(value, Decimal):
            scaled = _rescaled(value, type_) if value.is_finite() else None
            if scaled is None:
                raise place.refuse(index, value, f"does not fit {type_}")
            result.append(scaled)
        else:
            result.append(value)
    return result


def _rescaled(value: Decimal, type_: DecimalType) -> Decimal | None:
    """Return an equal decimal of exactly the type's scale, or None. By digits: no context can round."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits)).lstrip("0")
    if not text:
        return Decimal(0)
    shift = exponent + type_.scale
    if shift > type_.precision:
        return None
    if shift >= 0:
        text += "0" * shift
    elif text[shift:].strip("0") or len(text) <= -shift:
        return None
    else:
        text = text[:shift]
    if len(text) > type_.precision:
        return None
    return Decimal((sign, tuple(map(int, text)), -type_.scale))


def _json_text(value: object, index: int, place: Place) -> str | None:
    if value is None or _is_pandas_null(value):
        return None
    try:
        return canonical_json(value) if isinstance(value, str) else json_of(value)
    except ValueRefused as error:
        raise place.refuse(index, value, str(error.fields["reason"])) from None


def _lists(values: Sequence[object], type_: ListType, place: Place) -> pa.Array:
    offsets = [0]
    items: list[object] = []
    for index, value in enumerate(values):
        if isinstance(value, list | tuple):
            items.extend(value)
        elif isinstance(value, np.ndarray) and value.ndim == 1:
            items.extend(list(value))
        elif value is not None and not _is_pandas_null(value):
            raise place.refuse(index, value, f"is a {type(value).__name__}, not a {type_}")
        offsets.append(len(items))
    return lists(offsets, column_of(items, type_.element, place.elements(offsets)), _nulls(values), type_)


def _structs(values: Sequence[object], type_: StructType, place: Place) -> pa.Array:
    names = [field.name for field in type_.fields]
    columns: list[list[Any]] = [[] for _ in names]
    for index, value in enumerate(values):
        if value is None or _is_pandas_null(value):
            row: Mapping[Any, object] = dict.fromkeys(names)
        elif isinstance(value, Mapping):
            row = dict(value)
            if row.keys() != set(names):
                missing = [name for name in names if name not in row]
                extra = [name for name in row if name not in names]
                parts = [f"lacks {missing}"] * bool(missing) + [f"has unexpected {extra}"] * bool(extra)
                raise place.refuse(index, value, f"{' and '.join(parts)} for {type_}")
        else:
            raise place.refuse(index, value, f"is a {type(value).__name__}, not a {type_}")
        for column, name in zip(columns, names, strict=True):
            column.append(row[name])
    arrays = [
        column_of(column, field.type, place.field(field.name))
        for column, field in zip(columns, type_.fields, strict=True)
    ]
    return structs(arrays, _nulls(values), type_)


def _nulls(values: Sequence[object]) -> pa.Array:
    return pa.array([value is None or _is_pandas_null(value) for value in values], pa.bool_())
