"""Arrow array → the exact Arrow type of a logical type, without loss, or a refusal by name.

An array that already has its type comes back as the same object, after the checks that its type alone can't promise:
text without NUL and in UTF-8, dates and instants in the years 1 to 9999, times below 24:00, decimals within precision.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import ValueRefused
from lakeward.types.json_text import canonical_json
from lakeward.types.logical import ListType, LogicalType, StructType
from lakeward.types.refusal import Place
from lakeward.types.table import arrow_type

MIN_DAY, MAX_DAY = -719_162, 2_932_896
"""0001-01-01 and 9999-12-31 in days since 1970-01-01."""

DAY_MICROS = 86_400_000_000
MIN_MICROS, MAX_MICROS = MIN_DAY * DAY_MICROS, (MAX_DAY + 1) * DAY_MICROS - 1

_OUT_OF_YEARS = "is outside the years 1 to 9999"
_EXACT_INTEGERS = {"float": 2**24, "double": 2**53}
_CAST_IN_QUERY = "cast it in the query, or declare the column with the input's type"


def exact(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    """Return `array` in the Arrow type of `type_`.

    Conversions, all without loss or refused: integer → int, long, decimal; integer, float16, float32 → float, double if
    exact; float64 → float if it reads back equal; decimal → decimal without rounding, and with scale 0 → int, long;
    text → string, json, uuid (canonical form); binary → binary; date32, date64 → date; time and timestamp of any unit;
    instants of any zone → timestamptz; lists of any kind, structs by field name. Dictionary, run-end, view, large and
    fixed-size encodings are undone. An untyped null is null in every type.

    Raises:
        ColumnMismatch: the input's type has no conversion to `type_`.
        ValueRefused: one value does not fit.
    """
    array = _decoded(array)
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), arrow_type(type_))
    return _BY_KIND[type_.kind](array, type_, place)


def _decoded(array: pa.Array) -> pa.Array:
    while True:
        if isinstance(array, pa.DictionaryArray):
            array = array.dictionary_decode()
        elif pa.types.is_run_end_encoded(array.type):
            array = pc.run_end_decode(array)
        elif isinstance(array.type, pa.JsonType):
            # Other extension types stay and are refused: their storage may mean anything.
            array = array.storage
        else:
            return array


def _convert(
    array: pa.Array,
    convert: Callable[[pa.Array], pa.Array],
    place: Place,
    reason: str,
) -> pa.Array:
    """Apply an Arrow conversion that raises ArrowInvalid on a bad value, and name the first such value."""
    try:
        return convert(array)
    except pa.ArrowInvalid:
        good, bad = 0, len(array)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                convert(array.slice(good, middle - good))
                good = middle
            except pa.ArrowInvalid:
                bad = middle
        raise place.refuse(good, array[good], reason) from None


def _first(mask: pa.Array) -> int:
    """Return the index of the first true value, or -1."""
    return int(pc.index(mask, True).as_py())


def _boolean(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    if not pa.types.is_boolean(array.type):
        raise place.mismatch(array.type, type_)
    return array


def _integer(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    target = arrow_type(type_)
    if array.type == target:
        return array
    # Decimals of scale 0 are what DuckDB makes of a HUGEINT, the type of its sum() over integers.
    whole_decimal = pa.types.is_decimal(array.type) and array.type.scale == 0
    if not (pa.types.is_integer(array.type) or whole_decimal):
        raise place.mismatch(array.type, type_, _CAST_IN_QUERY)
    return _convert(array, lambda part: part.cast(target), place, f"does not fit {type_}")


def _floating(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    target = arrow_type(type_)
    if array.type == target:
        return array
    if pa.types.is_integer(array.type):
        return _float_of_integers(array, type_, place)
    if not pa.types.is_floating(array.type):
        raise place.mismatch(array.type, type_, _CAST_IN_QUERY)
    result = array.cast(target, safe=False)
    if array.type.bit_width > target.bit_width:
        changed = pc.and_(pc.not_equal(result.cast(array.type), array), pc.invert(pc.is_nan(array)))
        index = _first(changed)
        if index >= 0:
            raise place.refuse(index, array[index], f"is not exact as {type_}")
    return result


def _float_of_integers(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    target = arrow_type(type_)
    limit = _EXACT_INTEGERS[type_.kind]
    bounds = pc.min_max(array)
    low, high = bounds["min"].as_py(), bounds["max"].as_py()
    if low is not None and (low < -limit or high > limit):
        # Above the limit some integers are exact. Refused: a cast there and back, which saturates to a false equal
        # at the ends of int64 on some machines; Python compares an int with a float exactly.
        for index, value in enumerate(array.to_pylist()):
            if value is not None and float(target.to_pandas_dtype()(value)) != value:
                raise place.refuse(index, array[index], f"is not exact as {type_}")
    return array.cast(target, safe=False)


def _decimal(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    target = arrow_type(type_)
    wide = array
    if pa.types.is_integer(array.type):
        wide = array.cast(pa.decimal128(20, 0))
    elif pa.types.is_decimal32(array.type) or pa.types.is_decimal64(array.type):
        wide = array.cast(pa.decimal128(array.type.precision, array.type.scale))
    elif not pa.types.is_decimal(array.type):
        raise place.mismatch(array.type, type_, _CAST_IN_QUERY)

    def rescaled(part: pa.Array) -> pa.Array:
        if part.type == target:
            part.validate(full=True)
            return part
        result = part.cast(target)
        # Arrow's rescaling wraps around without an error, for instance 10^18 → decimal(38,30).
        if part.type.scale != target.scale and not result.cast(part.type).equals(part):
            raise pa.ArrowInvalid("the rescaled value differs")
        return result

    return _convert(wide, rescaled, place, f"does not fit {type_}")


def is_text(type_: pa.DataType) -> bool:
    """Return whether an Arrow type is text, of any layout."""
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_) or pa.types.is_string_view(type_))


def _string(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    if not is_text(array.type):
        raise place.mismatch(array.type, type_, _CAST_IN_QUERY)
    if array.type != pa.string():
        array = _convert(_rebased(array), lambda part: part.cast(pa.string()), place, "is too long for a string")
    data = _text_bytes(array)
    # As signed bytes, "all above 0" says in one pass at memory speed: ASCII, and no NUL.
    if data.size and data.min() <= 0:
        _check_text(array, data, place)
    return array


def _rebased(array: pa.Array) -> pa.Array:
    """Return a slice from beyond 2 GiB as a copy that starts at 0, because a cast looks at absolute offsets."""
    if len(array) and (pa.types.is_large_string(array.type) or pa.types.is_large_binary(array.type)):
        offsets = np.frombuffer(array.buffers()[1], np.int64, len(array) + 1, array.offset * 8)
        if offsets[-1] >= 2**31 and offsets[0] > 0:
            return array.take(pa.array(range(len(array)), pa.int32()))
    return array


def _text_bytes(array: pa.Array) -> Any:
    _, offsets, data = array.buffers()
    if len(array) == 0 or offsets is None or data is None:
        return np.empty(0, np.int8)
    bounds = np.frombuffer(offsets, np.int32, len(array) + 1, array.offset * 4)
    return np.frombuffer(data, np.int8)[bounds[0] : bounds[-1]]


def _check_text(array: pa.Array, data: Any, place: Place) -> None:
    raw = array.view(pa.binary())
    _convert(raw, lambda part: part.cast(pa.string()), place, "is not valid UTF-8")
    if data.view(np.uint8).min() == 0:
        index = _first(pc.greater_equal(pc.find_substring(raw, b"\0"), 0))
        if index >= 0:
            raise place.refuse(index, array[index], "has a NUL character, which PostgreSQL can't hold")


def _json(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    if not is_text(array.type):
        raise place.mismatch(array.type, type_, "pass JSON text, for instance to_json(…) in the query")
    array = _string(array, type_, place)
    known: dict[str | None, str | None] = {None: None}
    texts: list[str | None] = array.to_pylist()
    for index, text in enumerate(texts):
        if text not in known:
            try:
                known[text] = canonical_json(text or "")
            except ValueRefused as error:
                raise place.refuse(index, text, str(error.fields["reason"])) from None
        texts[index] = known[text]
    return pa.array(texts, pa.string())


def _binary(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    if array.type == pa.binary():
        return array
    kind = array.type
    if not (pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind) or pa.types.is_fixed_size_binary(kind)):
        raise place.mismatch(kind, type_, _CAST_IN_QUERY)
    return _convert(_rebased(array), lambda part: part.cast(pa.binary()), place, "is too long for a binary")


_UUID_TEXT = "^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$"


def _uuid(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    if isinstance(array.type, pa.UuidType):
        return array
    if array.type == pa.binary(16):
        return pa.ExtensionArray.from_storage(pa.uuid(), array)
    if not is_text(array.type):
        raise place.mismatch(array.type, type_)
    # DuckDB hands out its uuids as text.
    array = _string(array, type_, place)
    index = _first(pc.invert(pc.match_substring_regex(array, _UUID_TEXT)))
    if index >= 0:
        raise place.refuse(index, array[index], "is not a uuid in the form 8-4-4-4-12")
    digits = pc.fill_null(pc.replace_substring(array, "-", ""), "0" * 32)
    data = pa.py_buffer(bytes.fromhex("".join(digits.to_pylist())))
    storage = pa.FixedSizeBinaryArray.from_buffers(pa.binary(16), len(array), [None, data])
    if array.null_count:
        storage = pc.if_else(array.is_valid(), storage, pa.scalar(None, pa.binary(16)))
    return pa.ExtensionArray.from_storage(pa.uuid(), storage)


def _in_range(array: pa.Array, storage: pa.DataType, low: int, high: int, place: Place, reason: str) -> pa.Array:
    numbers = array.view(storage)
    bounds = pc.min_max(numbers)
    least = bounds["min"].as_py()
    if least is not None and (least < low or bounds["max"].as_py() > high):
        index = _first(pc.or_(pc.less(numbers, low), pc.greater(numbers, high)))
        raise place.refuse(index, array[index], reason)
    return array


def _date(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    if not pa.types.is_date(array.type):
        raise place.mismatch(array.type, type_, _CAST_IN_QUERY)
    if array.type != pa.date32():
        array = _convert(array, lambda part: part.cast(pa.date32()), place, "has a time of day")
    return _in_range(array, pa.int32(), MIN_DAY, MAX_DAY, place, _OUT_OF_YEARS)


def _time(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    if not pa.types.is_time(array.type):
        raise place.mismatch(array.type, type_, _CAST_IN_QUERY)
    target = arrow_type(type_)
    if array.type != target:
        array = _convert(array, lambda part: part.cast(target), place, "has nanoseconds, which are not kept")
    return _in_range(array, pa.int64(), 0, DAY_MICROS - 1, place, "is not a time from 00:00 to before 24:00")


def _timestamp(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    target = arrow_type(type_)
    if not pa.types.is_timestamp(array.type):
        raise place.mismatch(array.type, type_, _CAST_IN_QUERY)
    if (array.type.tz is None) != (target.tz is None):
        raise place.mismatch(array.type, type_, "say which zone is meant, for instance AT TIME ZONE in the query")
    if array.type != target:
        # The zone is only a label of the type: the values are instants in UTC already.
        reason = "has nanoseconds, which are not kept" if array.type.unit == "ns" else _OUT_OF_YEARS
        array = _convert(array, lambda part: part.cast(target), place, reason)
    return _in_range(array, pa.int64(), MIN_MICROS, MAX_MICROS, place, _OUT_OF_YEARS)


def _list(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    assert isinstance(type_, ListType)
    kind = array.type
    if not (
        pa.types.is_list(kind)
        or pa.types.is_large_list(kind)
        or pa.types.is_fixed_size_list(kind)
        or pa.types.is_list_view(kind)
        or pa.types.is_large_list_view(kind)
    ):
        raise place.mismatch(kind, type_)
    lengths = pc.fill_null(pc.list_value_length(array), 0)
    offsets: Any = np.concatenate([[0], np.cumsum(lengths.to_numpy(zero_copy_only=False), dtype=np.int64)])
    values = flattened(array)
    checked = exact(values, type_.element, place.elements(offsets))
    if checked is values and kind.equals(arrow_type(type_), check_metadata=True):
        return array
    return lists(offsets, checked, array.is_null(), type_)


def flattened(array: pa.Array) -> pa.Array:
    """Return the elements of all lists in a row, without what lies under a null."""
    if len(array) == array.null_count:
        # Arrow would have to make an empty array of the elements' type, and can't for uuids.
        return array.values.slice(0, 0)
    return pc.list_flatten(array)


def lists(offsets: Any, values: pa.Array, nulls: pa.Array, type_: LogicalType) -> pa.Array:
    """Return list i of `values[offsets[i]:offsets[i + 1]]`, or null."""
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), values, type=arrow_type(type_), mask=nulls)


def _struct(array: pa.Array, type_: LogicalType, place: Place) -> pa.Array:
    assert isinstance(type_, StructType)
    if not pa.types.is_struct(array.type):
        raise place.mismatch(array.type, type_)
    names = [field.name for field in array.type]
    if sorted(names) != sorted(field.name for field in type_.fields):
        raise place.mismatch(array.type, type_, "struct fields match by name; all must be there and no others")
    # Flattening puts the struct's nulls into its fields, so that nothing is checked under a null.
    fields = dict(zip(names, array.flatten(), strict=True))
    checked = {field.name: exact(fields[field.name], field.type, place.field(field.name)) for field in type_.fields}
    same = all(checked[name] is fields[name] for name in names)
    if same and array.type.equals(arrow_type(type_), check_metadata=True):
        return array
    return structs(list(checked.values()), array.is_null(), type_)


def structs(fields: list[pa.Array], nulls: pa.Array, type_: LogicalType) -> pa.Array:
    """Return structs of the field arrays, in declared order, or null."""
    return pa.StructArray.from_arrays(fields, fields=list(arrow_type(type_)), mask=nulls)


_BY_KIND: dict[str, Callable[[pa.Array, LogicalType, Place], pa.Array]] = {
    "boolean": _boolean,
    "int": _integer,
    "long": _integer,
    "float": _floating,
    "double": _floating,
    "decimal": _decimal,
    "string": _string,
    "binary": _binary,
    "uuid": _uuid,
    "date": _date,
    "time": _time,
    "timestamp": _timestamp,
    "timestamptz": _timestamp,
    "json": _json,
    "list": _list,
    "struct": _struct,
}
