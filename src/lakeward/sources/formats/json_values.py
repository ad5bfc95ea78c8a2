"""JSON values as the Arrow array of a logical type, exactly: no number passes through a double on its way.

| type | JSON |
|---|---|
| boolean | `true`, `false` |
| int, long, float, double, decimal | a number, as `text_values` accepts it |
| string, binary, uuid, date, time, timestamp, timestamptz | a text, as `text_values` accepts it |
| list, struct | an array, an object; a key that is missing is null, one that the struct has not is refused |
| json | any value, in its canonical text |
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain

import pyarrow as pa

from lakeward.errors import ValueRefused
from lakeward.sources.formats.json_records import Number
from lakeward.sources.formats.text_values import Unconvertible, parse_text
from lakeward.types.arrow_values import lists, structs
from lakeward.types.json_text import json_of
from lakeward.types.logical import ListType, LogicalType, StructType
from lakeward.types.refusal import show

_NAMES: dict[type, str] = {bool: "a boolean", Number: "a number", str: "a text", dict: "an object", list: "an array"}
_NUMBERS = ("int", "long", "float", "double", "decimal")


class Unfit(Exception):
    """The value at `index` (from 0) does not fit; `path` leads to it inside a list or struct, as `[2].name`."""

    def __init__(self, index: int, value: object, reason: str, path: str = "") -> None:
        super().__init__(reason)
        self.index = index
        self.value = value
        self.reason = reason
        self.path = path

    def inside(self, index: int, step: str) -> Unfit:
        """Return the same of the value around it."""
        return Unfit(index, self.value, self.reason, f"{step}{self.path}")


def kind_of(value: object) -> str:
    """Return what a value is in JSON: `a number`, `a text`, …"""
    return _NAMES[type(value)]


def json_array(values: Sequence[object], type_: LogicalType) -> pa.Array:
    """Return JSON values as an array of the Arrow type of `type_`; a JSON null is null.

    Raises:
        Unfit: the first value found that is not one of the type, or would change.
    """
    if type_.kind == "json":
        return pa.array([_document(value, index) for index, value in enumerate(values)], pa.string())
    if isinstance(type_, ListType):
        return _lists(values, type_)
    if isinstance(type_, StructType):
        return _structs(values, type_)
    expected: type = bool if type_.kind == "boolean" else Number if type_.kind in _NUMBERS else str
    _check_kind(values, expected, type_)
    if expected is bool:
        return pa.array(values, pa.bool_())
    try:
        return parse_text(pa.array(values, pa.string()), type_)
    except Unconvertible as error:
        raise Unfit(error.index, error.value, error.reason) from None


def json_texts(values: Sequence[object]) -> list[str | None]:
    """Return any JSON values as texts: a text as it is, another one in its canonical text.

    Raises:
        Unfit: a value has none.
    """
    return [value if type(value) is str else _document(value, index) for index, value in enumerate(values)]


def _check_kind(values: Sequence[object], expected: type, type_: LogicalType) -> None:
    if set(map(type, values)) <= {expected, type(None)}:
        return
    for index, value in enumerate(values):
        if value is not None and type(value) is not expected:
            raise Unfit(index, value, f"is {kind_of(value)}, and no {type_}")


def _document(value: object, index: int) -> str | None:
    if value is None:
        return None
    try:
        return json_of(_tree(value))
    except InvalidOperation:
        raise Unfit(index, value, "has a number of too many digits") from None
    except ValueRefused as error:
        raise Unfit(index, value, str(error.fields["reason"])) from None
    except RecursionError:
        raise Unfit(index, "…", "is nested too deep") from None


def _tree(value: object) -> object:
    if isinstance(value, Number):
        return Decimal(value)
    if isinstance(value, dict):
        return {name: _tree(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_tree(inner) for inner in value]
    return value


def _lists(values: Sequence[object], type_: ListType) -> pa.Array:
    _check_kind(values, list, type_)
    given = [value if isinstance(value, list) else [] for value in values]
    offsets = [0]
    for value in given:
        offsets.append(offsets[-1] + len(value))
    try:
        elements = json_array(list(chain.from_iterable(given)), type_.element)
    except Unfit as error:
        index = bisect_right(offsets, error.index) - 1
        raise error.inside(index, f"[{error.index - offsets[index]}]") from None
    return lists(offsets, elements, _nulls(values), type_)


def _structs(values: Sequence[object], type_: StructType) -> pa.Array:
    _check_kind(values, dict, type_)
    names = [field.name for field in type_.fields]
    given = [value if isinstance(value, dict) else {} for value in values]
    known = set(names)
    for index, value in enumerate(given):
        if not value.keys() <= known:
            extra = [name for name in value if name not in known]
            raise Unfit(index, value, f"has {', '.join(map(repr, extra))}, which {type_} has not")
    arrays = []
    for field in type_.fields:
        try:
            arrays.append(json_array([value.get(field.name) for value in given], field.type))
        except Unfit as error:
            raise error.inside(error.index, f".{field.name}") from None
    return structs(arrays, _nulls(values), type_)


def _nulls(values: Sequence[object]) -> pa.Array:
    return pa.array([value is None for value in values], pa.bool_())


def shown(value: object) -> str:
    """Return a value for an error, shortened."""
    return str(value)[:100] if isinstance(value, Number) else show(value)
