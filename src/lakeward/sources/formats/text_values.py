"""Values as text, both ways and exactly: what a type's text form is in a CSV file, and which text a type accepts.

| type | written as | also accepted |
|---|---|---|
| boolean | `true`, `false` | any case |
| int, long | digits, `-` | leading zeros and `+` |
| float, double | the shortest text that gives the same bits, `1.0`, `nan`, `inf` | any decimal or exponent form |
| decimal | digits with the declared scale | any form of the same number |
| date, time | `2024-02-29`, `10:11:12.000000` | fewer or no digits of the second's fraction |
| timestamp | `2024-02-29 10:11:12.000000` | `T`, and fewer parts |
| timestamptz | the same in UTC, with `Z` | any offset from UTC |
| uuid | lower case with hyphens | any case |
| binary | base64 (RFC 4648, section 4) | – |
| json | its canonical text | any text of the same value |
| string | itself | – |

A list or struct has no text form here: Parquet holds it.
"""

from __future__ import annotations

import uuid
from base64 import b64encode
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import SchemaError, ValueRefused
from lakeward.sources.formats.text_bytes import sizes, surely_only
from lakeward.types import arrow_text
from lakeward.types.json_text import canonical_json
from lakeward.types.logical import MAX_DECIMAL_PRECISION, DecimalType, LogicalType, parse_type

Converter = Callable[[pa.Array], pa.Array]

_WHOLE = b"0123456789-"
_PLAIN = b"0123456789-."
_TRUTH = b"truefalsTRUEFALS"
_FIRST_INSTANT, _LAST_INSTANT = -62_135_596_800_000_000, 253_402_300_799_999_999
"""Microseconds since 1970 of the start of the year 1, and of the end of 9999."""
_MAX_DOUBLE_WHOLE = 2**53
_MAX_FLOAT_WHOLE = 2**24


class Unconvertible(Exception):
    """The value at `index` (from 0) is not a text of the type."""

    def __init__(self, index: int, value: str, reason: str) -> None:
        super().__init__(reason)
        self.index = index
        self.value = value
        self.reason = reason


class _Refused(Exception):
    """Some value of an array is not a text of the type."""


def parse_text(values: pa.Array, type_: str | LogicalType) -> pa.Array:
    """Return the text values as values of the type, in its Arrow form; nulls stay.

    Raises:
        Unconvertible: the first value that the type does not accept, or would change.
        SchemaError: the type has no text form.
    """
    logical = parse_type(type_) if isinstance(type_, str) else type_
    convert = _parser(logical)
    try:
        converted = convert(values)
    except (pa.ArrowInvalid, _Refused):
        index, reason = _first_refused(values, convert)
        raise Unconvertible(index, values[index].as_py(), f"is not a {logical}{reason}") from None
    return converted


def refusal(values: pa.Array, type_: LogicalType) -> str | None:
    """Return why some text value is not one of the type, of a single value exactly; None: all are."""
    reason = _refusal(values, _parser(type_))
    return None if reason is None else f"is not a {type_}{reason}"


def parsed(values: pa.Array, type_: LogicalType) -> pa.Array | None:
    """Return the text values as values of the type, as `parse_text` does; None: one is not of it."""
    try:
        return _parser(type_)(values)
    except (pa.ArrowInvalid, _Refused):
        return None


def out_of_range(values: pa.Array, floats: pa.Array) -> bool:
    """Tell whether a number is too large or too small for the float that its text was cast to."""
    infinite = values.filter(pc.is_inf(floats))
    zero = values.filter(pc.equal(floats, 0))
    return _any_match(infinite, "[0-9]") or _any_match(zero, "^[^eE]*[1-9]")


def has_text_form(type_: LogicalType) -> bool:
    """Tell whether a CSV file can hold the type."""
    return type_.kind not in ("list", "struct")


def format_text(values: pa.Array) -> pa.Array:
    """Return the values, of any Arrow type that a dataset can have, as text that `parse_text` reads back equal.

    Raises:
        SchemaError: the type has no text form.
    """
    type_ = values.type
    if isinstance(values, pa.ExtensionArray):
        storage = values.storage
        return _format_uuid(storage) if type_ == pa.uuid() else format_text(storage)
    if pa.types.is_dictionary(type_):
        return format_text(values.dictionary_decode())
    if pa.types.is_floating(type_):
        # `1.0` and not `1`: a number with a point is none that has to be whole.
        return pc.replace_substring_regex(values.cast(pa.string()), r"^(-?[0-9]+)$", r"\1.0")
    if pa.types.is_fixed_size_binary(type_) and type_.byte_width == 16:
        return _format_uuid(values)
    if pa.types.is_binary(type_) or pa.types.is_large_binary(type_) or pa.types.is_fixed_size_binary(type_):
        return pa.array(
            [None if value is None else b64encode(value).decode() for value in values.to_pylist()], pa.string()
        )
    if pa.types.is_timestamp(type_) and type_.tz is not None:
        return values.cast(pa.timestamp(type_.unit, "UTC")).cast(pa.string())
    if pa.types.is_decimal(type_):
        texts = values.cast(pa.string())
        # The cast turns to exponents below 10^-6.
        if not pc.any(pc.match_substring(texts, "E"), min_count=0).as_py():
            return texts
        return pa.array([None if text is None else plain_decimal(text) for text in texts.to_pylist()], pa.string())
    if pa.types.is_nested(type_):
        raise SchemaError(
            f"CSV has no form for a column of type {type_}", next_step="export to Parquet", type=str(type_)
        )
    return values.cast(pa.string())


def _format_uuid(values: pa.Array) -> pa.Array:
    return pa.array([None if v is None else str(uuid.UUID(bytes=v)) for v in values.to_pylist()], pa.string())


def _first_refused(values: pa.Array, convert: Converter) -> tuple[int, str]:
    """Find the first value that is refused, by halves: one more pass over the values in all."""
    low, high = 0, len(values)
    reason = ""
    while high - low > 1:
        middle = (low + high) // 2
        if _refusal(values[low:middle], convert) is not None:
            high = middle
        else:
            low = middle
    reason = _refusal(values[low:high], convert) or ""
    return low, reason


def _refusal(values: pa.Array, convert: Converter) -> str | None:
    try:
        convert(values)
    except pa.ArrowInvalid:
        return ""
    except _Refused as refused:
        return f": {refused}" if str(refused) else ""
    return None


def _parser(logical: LogicalType) -> Converter:
    if isinstance(logical, DecimalType):
        return partial(_parse_decimal, precision=logical.precision, scale=logical.scale)
    if logical.kind in _PARSERS:
        return _PARSERS[logical.kind]
    raise SchemaError(f"CSV has no form for type {logical}", next_step="import from Parquet", type=str(logical))


def _require(values: pa.Array, pattern: str, reason: str = "") -> None:
    if not pc.all(pc.match_substring_regex(values, pattern), min_count=0).as_py():
        raise _Refused(reason)


def _parse_boolean(values: pa.Array) -> pa.Array:
    if surely_only(values, _TRUTH):
        # Without 0 and 1, which the cast would take, too.
        return values.cast(pa.bool_())
    lower = pc.utf8_lower(values)
    if not pc.all(pc.is_in(lower.drop_null(), pa.array(["true", "false"])), min_count=0).as_py():
        raise _Refused
    return lower.cast(pa.bool_())


def _parse_whole(values: pa.Array, type_: pa.DataType) -> pa.Array:
    if surely_only(values, _WHOLE):
        return values.cast(type_)
    # The cast alone takes hexadecimal, and no plus sign.
    _require(values, "^[+-]?[0-9]+$")
    return pc.replace_substring_regex(values, r"^\+", "").cast(type_)


def _parse_decimal(values: pa.Array, precision: int, scale: int) -> pa.Array:
    plain = surely_only(values, _PLAIN)
    if not plain and _any_match(values, "[eE]"):
        values = pa.array([None if text is None else plain_decimal(text) for text in values.to_pylist()], pa.string())
    if not plain:
        _require(values, r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)$")
    # The cast wraps around without an error where scaling up overflows 128 bits: 10^18 as decimal(38,30), for instance.
    whole = precision - scale
    if sizes(values)[1] > whole and _any_match(values, rf"^[+-]?0*[1-9][0-9]{{{whole},}}(\.|$)"):
        raise _Refused
    return values.cast(pa.decimal128(precision, scale))


def plain_decimal(text: str) -> str:
    """Return a number without exponent; a text that is none, or one of very many digits, comes back as it is."""
    try:
        number = Decimal(text)
    except InvalidOperation:
        return text
    return f"{number:f}" if number.is_finite() and abs(number.adjusted()) <= 2 * MAX_DECIMAL_PRECISION else text


def _parse_floating(values: pa.Array, type_: pa.DataType, largest_whole: int) -> pa.Array:
    parsed = values.cast(type_)
    # The cast turns what is too large into infinity, what is too small into zero, and long whole numbers into others.
    if out_of_range(values, parsed):
        raise _Refused("it is out of range")
    # A smaller one has not lost a digit.
    large = values.filter(pc.greater_equal(pc.abs(parsed), pa.scalar(largest_whole, type_)))
    whole = large.filter(pc.match_substring_regex(large, f"^[+-]?[0-9]{{{len(str(largest_whole))},}}$"))
    to_exact = partial(_exact_in_float, single=type_ == pa.float32())
    if not all(to_exact(text) for text in whole.drop_null().to_pylist()):
        raise _Refused("its digits do not fit")
    return parsed


def _any_match(values: pa.Array, pattern: str) -> bool:
    # A pattern is compiled anew with each call, which of few values is most of the work.
    return len(values) > 0 and bool(pc.any(pc.match_substring_regex(values, pattern), min_count=0).as_py())


def _exact_in_float(text: str, single: bool) -> bool:
    number = int(text)
    rounded = pa.scalar(float(number), pa.float64())
    if single:
        rounded = rounded.cast(pa.float32(), safe=False)
    return int(rounded.as_py()) == number


def _parse_date(values: pa.Array) -> pa.Array:
    _refuse_year_zero(values)
    return values.cast(pa.date32())


def _parse_timestamp(values: pa.Array) -> pa.Array:
    _refuse_year_zero(values)
    return values.cast(pa.timestamp("us"))


def _parse_timestamptz(values: pa.Array) -> pa.Array:
    _refuse_year_zero(values)
    parsed = values.cast(pa.timestamp("us", "UTC"))
    # An offset can carry an instant out of the years 1 to 9999.
    found = pc.min_max(parsed.cast(pa.int64()))
    if len(values) > values.null_count and not (
        found["min"].as_py() >= _FIRST_INSTANT and found["max"].as_py() <= _LAST_INSTANT
    ):
        raise _Refused("in UTC it is outside the years 1 to 9999")
    return parsed


def _refuse_year_zero(values: pa.Array) -> None:
    if pc.any(pc.starts_with(values, "0000"), min_count=0).as_py():
        raise _Refused("there is no year 0")


def _parse_time(values: pa.Array) -> pa.Array:
    _require(values, r"^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,6})?)?$")
    return arrow_text.time(values, pa.time64("us"))


def _parse_uuid(values: pa.Array) -> pa.Array:
    _require(values, "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$")
    return arrow_text.uuid(values, pa.uuid())


def _parse_binary(values: pa.Array) -> pa.Array:
    try:
        return arrow_text.binary(values, pa.binary())
    except ValueError as error:
        raise _Refused(f"it is not base64: {error}") from None


def _parse_json(values: pa.Array) -> pa.Array:
    try:
        return pa.array([None if text is None else canonical_json(text) for text in values.to_pylist()], pa.string())
    except ValueRefused as refused:
        raise _Refused(str(refused.fields["reason"])) from None


_PARSERS: dict[str, Converter] = {
    "boolean": _parse_boolean,
    "int": partial(_parse_whole, type_=pa.int32()),
    "long": partial(_parse_whole, type_=pa.int64()),
    "float": partial(_parse_floating, type_=pa.float32(), largest_whole=_MAX_FLOAT_WHOLE),
    "double": partial(_parse_floating, type_=pa.float64(), largest_whole=_MAX_DOUBLE_WHOLE),
    "string": lambda values: values,
    "binary": _parse_binary,
    "uuid": _parse_uuid,
    "date": _parse_date,
    "time": _parse_time,
    "timestamp": _parse_timestamp,
    "timestamptz": _parse_timestamptz,
    "json": _parse_json,
}
