"""The texts in which a replication session sends values → Arrow, as a sync would have read them: see `postgres_types`.

The session prints as that of a sync does: UTC, ISO dates and intervals, hexadecimal bytes, every digit of a float.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lakeward.sources.connectors.postgres import PostgresColumn
from lakeward.sources.connectors.postgres_types import PostgresType, rule_of
from lakeward.types import arrow_text
from lakeward.types.logical import ListType, LogicalType, parse_type
from lakeward.types.table import arrow_type

Parser = Callable[[pa.Array], pa.Array]

SESSION = {
    "TimeZone": "UTC",
    "DateStyle": "ISO,YMD",
    "IntervalStyle": "iso_8601",
    "extra_float_digits": "1",
    "bytea_output": "hex",
}
"""What the session of a log is set to, so that the texts are those that are read here."""

_ITEM = re.compile(r'"((?:[^"\\]|\\.)*)"(?:,|$)|([^,"{}\\]*)(?:,|$)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


class RefusedText(Exception):
    """The text at `index` has no form in the column's type."""

    def __init__(self, index: int, text: str) -> None:
        super().__init__(text)
        self.index = index
        self.text = text


def parse_texts(values: pa.Array, column: PostgresColumn, wanted: str) -> pa.Array:
    """Return a column's values; nulls stay.

    Args:
        values: their texts.
        column: the column as it was discovered.
        wanted: the logical type's text: the column's own, or `string`.

    Raises:
        RefusedText: the first value that the type can't hold.
    """
    parse = _cast_to_text(column.of) if wanted == "string" and wanted != column.type else _parser(column.of)
    try:
        return parse(values)
    except (pa.ArrowInvalid, ValueError):
        index = _first_refused(values, parse)
        raise RefusedText(index, values[index].as_py()) from None


def _first_refused(values: pa.Array, parse: Parser) -> int:
    """Find the first text that is refused, by halves."""
    low, high = 0, len(values)
    while high - low > 1:
        middle = (low + high) // 2
        try:
            parse(values[low:middle])
            low = middle
        except (pa.ArrowInvalid, ValueError):
            high = middle
    return low


def _parser(of: PostgresType) -> Parser:
    rule = rule_of(of)
    assert rule.type is not None
    logical = parse_type(rule.type)
    if isinstance(logical, ListType):
        assert of.element is not None
        return partial(_lists, of=of.element, logical=logical)
    if logical.kind == "string":
        return _PRINTED.get(of.name if of.element is None else "", _same)
    return _PARSERS.get(logical.kind, partial(_cast, logical=logical))


def _cast_to_text(of: PostgresType) -> Parser:
    return _CAST_TO_TEXT.get(of.name if of.element is None else "", _same)


def _same(texts: pa.Array) -> pa.Array:
    return texts


def _cast(texts: pa.Array, logical: LogicalType) -> pa.Array:
    return texts.cast(arrow_type(logical))


def _boolean(texts: pa.Array) -> pa.Array:
    return pc.equal(texts, "t")


def _spelt(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, "t"), "true", "false")


def _unpadded(texts: pa.Array) -> pa.Array:
    return pc.utf8_rtrim(texts, characters=" ")


def _with_mask(texts: pa.Array) -> pa.Array:
    """Return addresses with their masks, which the server leaves out of those of single hosts."""
    mask = pc.if_else(pc.match_substring(texts, ":"), "/128", "/32")
    return pc.if_else(pc.match_substring(texts, "/"), texts, pc.binary_join_element_wise(texts, mask, ""))


def _binary(texts: pa.Array) -> pa.Array:
    """Return the bytes of `\\x00ff`."""
    if not pc.all(pc.starts_with(texts, "\\x"), min_count=0).as_py():
        raise ValueError("bytes are printed in hexadecimal digits")
    digits = pc.fill_null(pc.utf8_slice_codeunits(texts, 2), "")
    data = bytes.fromhex("".join(digits.to_pylist()))
    ends = np.cumsum(np.asarray(pc.binary_length(digits))) // 2
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    made = pa.BinaryArray.from_buffers(pa.binary(), len(texts), [None, pa.py_buffer(offsets), pa.py_buffer(data)])
    return made if not texts.null_count else pc.if_else(texts.is_valid(), made, pa.scalar(None, pa.binary()))


def _lists(texts: pa.Array, of: PostgresType, logical: ListType) -> pa.Array:
    items: list[str | None] = []
    ends = [0]
    for text in texts.to_pylist():
        if text is not None:
            items.extend(_items(text))
        ends.append(len(items))
    values = _parser(of)(pa.array(items, pa.string()))
    missing = texts.is_null() if texts.null_count else None
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32()), values, type=arrow_type(logical), mask=missing)


def _items(text: str) -> list[str | None]:
    """Return the items of an array of one dimension that begins at 1; other arrays print otherwise."""
    if text[:1] != "{" or text[-1:] != "}":
        raise ValueError("an array with bounds of its own")
    inner = text[1:-1]
    if not inner:
        return []
    if not any(mark in inner for mark in '"\\{}'):
        return [None if item == "NULL" else item for item in inner.split(",")]
    items: list[str | None] = []
    place = 0
    while place <= len(inner):
        found = _ITEM.match(inner, place)
        if found is None:
            raise ValueError("an array of several dimensions")
        quoted, plain = found.groups()
        if quoted is not None:
            items.append(_ESCAPED.sub(r"\1", quoted))
        else:
            items.append(None if plain == "NULL" else plain)
        if found.end() == len(inner) and not found.group().endswith(","):
            break
        place = found.end()
    return items


_PARSERS: dict[str, Parser] = {
    "boolean": _boolean,
    "binary": _binary,
    "json": _same,
    "time": partial(arrow_text.time, type_=pa.time64("us")),
    "uuid": partial(arrow_text.uuid, type_=pa.uuid()),
}
_PRINTED: dict[str, Parser] = {"inet": _with_mask, "cidr": _with_mask}
"""Types of text whose cast, by which a sync reads them, is not what the server prints."""
_CAST_TO_TEXT: dict[str, Parser] = {**_PRINTED, "bool": _spelt, "bpchar": _unpadded}
"""The same for types that are read as text by choice."""
