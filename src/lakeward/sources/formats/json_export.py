"""Rows as JSON objects, one text for each, with every digit: what `JsonFile` reads back equal.

Numbers and booleans stand as such, `json` as the value that it is, all else as the text that `text_values` gives it.
Nulls are written; the value `null` of a `json` column can't be told from one. NaN and infinity, for which JSON has no
form, are the texts `nan`, `inf` and `-inf`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.sources.formats.text_values import format_text
from lakeward.types.logical import ListType, LogicalType, StructType
from lakeward.types.nearest import logical_type

_BARE = ("boolean", "int", "long", "decimal", "json")
_SPECIAL = pa.array(["nan", "inf", "-inf"], pa.large_string())
_LINES = {mark: f"\\u{mark:04x}" for mark in (0x85, 0x2028, 0x2029)}
"""Ends of lines for many readers of lines, whatever JSON allows."""

_ESCAPED = r'[\x00-\x1f"\\\x{85}\x{2028}\x{2029}]'


def json_objects(batch: pa.RecordBatch, types: Mapping[str, LogicalType]) -> pa.Array:
    """Return one JSON object for each row, its keys in the order of the columns.

    Args:
        batch: the rows.
        types: of the columns; Arrow does not tell `json` from `string`. What is not here is as Arrow has it.
    """
    columns = [
        json_values(values, types.get(field.name) or logical_type(field.type))
        for field, values in zip(batch.schema, batch.columns, strict=True)
    ]
    return _objects(batch.schema.names, columns, batch.num_rows)


def json_values(values: pa.Array, type_: LogicalType) -> pa.Array:
    """Return the JSON text of each value; of a null `null`."""
    if isinstance(type_, ListType):
        return _lists(values, type_)
    if isinstance(type_, StructType):
        return _structs(values, type_)
    texts = format_text(values).cast(pa.large_string())
    if type_.kind == "json":
        # In JSON they stand in texts only, where they may be written as escapes.
        for mark, escape in _LINES.items():
            texts = pc.replace_substring(texts, chr(mark), escape)
    if type_.kind in _BARE:
        return texts.fill_null("null")
    if type_.kind in ("float", "double"):
        special = pc.is_in(texts, _SPECIAL)
        if not pc.any(special, min_count=0).as_py():
            return texts.fill_null("null")
        return pc.if_else(special, _quoted(texts), texts).fill_null("null")
    return _quoted(texts).fill_null("null")


def _quoted(texts: pa.Array) -> pa.Array:
    must = pc.match_substring_regex(texts, _ESCAPED)
    if pc.any(must, min_count=0).as_py():
        escaped = [_text(text)[1:-1] for text in texts.filter(must).to_pylist()]
        texts = pc.replace_with_mask(texts, must.fill_null(False), pa.array(escaped, pa.large_string()))
    mark = _scalar('"')
    return pc.binary_join_element_wise(mark, texts, mark, _scalar(""))


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).translate(_LINES)


def _lists(values: pa.Array, type_: ListType) -> pa.Array:
    ends = values.offsets.to_pylist()
    # A slice of lists still has the elements of all.
    first, last = (ends[0], ends[-1]) if ends else (0, 0)
    elements = json_values(values.values.slice(first, last - first), type_.element).to_pylist()
    ends = [end - first for end in ends]
    rows = [
        f"[{','.join(elements[ends[row] : ends[row + 1]])}]" if there else "null"
        for row, there in enumerate(values.is_valid().to_pylist())
    ]
    return pa.array(rows, pa.large_string())


def _structs(values: pa.Array, type_: StructType) -> pa.Array:
    fields = [json_values(values.field(position), field.type) for position, field in enumerate(type_.fields)]
    objects = _objects([field.name for field in type_.fields], fields, len(values))
    return pc.if_else(values.is_valid(), objects, _scalar("null"))


def _objects(names: Sequence[str], columns: Sequence[pa.Array], rows: int) -> pa.Array:
    if not rows:
        return pa.array([], pa.large_string())
    parts: list[pa.Array | pa.Scalar] = []
    for position, (name, column) in enumerate(zip(names, columns, strict=True)):
        parts += [_scalar(f"{',' if position else '{'}{_text(name)}:"), column]
    return pc.binary_join_element_wise(*parts, _scalar("}"), _scalar(""))


def _scalar(text: str) -> pa.Scalar:
    return pa.scalar(text, pa.large_string())
