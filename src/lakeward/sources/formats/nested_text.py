"""Lists and structs as JSON text, both ways and exactly: what a cell of a file that people edit holds of them.

A list is a JSON array, a struct an object with exactly its fields. Whole numbers, floats and booleans stand as such;
every other value is a string of the form that `text_values` gives it, as decimals do, and NaN and infinity.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from lakeward.sources.formats.text_values import Unconvertible, format_text, parse_text
from lakeward.types.logical import ListType, LogicalType, StructType
from lakeward.types.table import arrow_type

_NUMBER_KINDS = ("int", "long", "float", "double", "decimal")
_SPECIAL = ("nan", "inf", "-inf")


class _Number(str):
    """The digits of a JSON number, as they stand in the text."""

    __slots__ = ()


class _Misfit(Exception):
    """A JSON value that is not one of the type."""


def is_nested(type_: LogicalType) -> bool:
    """Tell whether a type's text is that of this module."""
    return isinstance(type_, ListType | StructType)


def format_nested(values: pa.Array, type_: LogicalType) -> pa.Array:
    """Return lists or structs as JSON text, which `parse_nested` reads back equal; nulls stay."""
    trees = _trees(values, type_)
    texts = [None if tree is None else json.dumps(tree, ensure_ascii=False) for tree in trees]
    return pa.array(texts, pa.string())


def parse_nested(values: pa.Array, type_: LogicalType) -> pa.Array:
    """Return JSON texts as lists or structs in their Arrow form; nulls stay.

    Raises:
        Unconvertible: the first text that is not JSON, or not of the type.
    """
    texts = values.to_pylist()
    trees = [_parsed(index, text) for index, text in enumerate(texts)]
    try:
        return _array(trees, type_)
    except _Misfit:
        for index, tree in enumerate(trees):
            try:
                _array([tree], type_)
            except _Misfit as misfit:
                raise Unconvertible(index, texts[index], f"is not a {type_}: {misfit}") from None
        raise


def _trees(values: pa.Array, type_: LogicalType) -> list[object]:
    """Return the values as `json.dumps` takes them."""
    valid = values.is_valid().to_pylist()
    if isinstance(type_, ListType):
        elements, ends = _trees(values.values, type_.element), values.offsets.to_pylist()
        return [elements[ends[row] : ends[row + 1]] if there else None for row, there in enumerate(valid)]
    if isinstance(type_, StructType):
        fields = {field.name: _trees(values.field(n), field.type) for n, field in enumerate(type_.fields)}
        return [
            {name: column[row] for name, column in fields.items()} if there else None for row, there in enumerate(valid)
        ]
    if type_.kind == "boolean":
        return list(values.to_pylist())
    return [None if text is None else _leaf(text, type_.kind) for text in format_text(values).to_pylist()]


def _leaf(text: str, kind: str) -> object:
    if kind in ("int", "long"):
        return int(text)
    if kind in ("float", "double") and text not in _SPECIAL:
        return float(text)
    return text


def _parsed(index: int, text: str | None) -> object:
    if text is None:
        return None
    try:
        return json.loads(
            text, parse_int=_Number, parse_float=_Number, parse_constant=_no_constant, object_pairs_hook=_object
        )
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise Unconvertible(index, text, f"is not JSON: {reason}") from None


def _no_constant(text: str) -> object:
    raise ValueError(f"{text} has to stand in quotes")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name comes twice in an object")
    return found


def _array(trees: Sequence[object], type_: LogicalType) -> pa.Array:
    missing = pa.array([tree is None for tree in trees], pa.bool_())
    if isinstance(type_, ListType):
        elements: list[object] = []
        ends = [0]
        for tree in trees:
            if tree is not None and not isinstance(tree, list):
                raise _Misfit(f"{_shown(tree)} is no list")
            elements.extend(tree or ())
            ends.append(len(elements))
        offsets, inner = pa.array(ends, pa.int32()), _array(elements, type_.element)
        return pa.ListArray.from_arrays(offsets, inner, type=arrow_type(type_), mask=missing)
    if isinstance(type_, StructType):
        names = [field.name for field in type_.fields]
        for tree in trees:
            if tree is not None and (not isinstance(tree, dict) or set(tree) != set(names)):
                raise _Misfit(f"{_shown(tree)} is no object with exactly {', '.join(names)}")
        columns = [
            _array([tree[field.name] if isinstance(tree, dict) else None for tree in trees], field.type)
            for field in type_.fields
        ]
        return pa.StructArray.from_arrays(columns, fields=list(arrow_type(type_)), mask=missing)
    texts = [None if tree is None else _text(tree, type_.kind) for tree in trees]
    try:
        return parse_text(pa.array(texts, pa.string()), type_)
    except Unconvertible as error:
        raise _Misfit(f"{error.value!r} {error.reason}") from None


def _text(tree: object, kind: str) -> str:
    """Return the text of a value that is neither list nor object."""
    if isinstance(tree, bool) and kind == "boolean":
        return "true" if tree else "false"
    if isinstance(tree, _Number) and kind in _NUMBER_KINDS:
        return str(tree)
    if isinstance(tree, str) and not isinstance(tree, _Number) and kind != "boolean":
        return tree
    raise _Misfit(f"{_shown(tree)} is not a {kind}")


def _shown(tree: object) -> str:
    return str(tree)[:100] if isinstance(tree, _Number) else repr(tree)[:100]
