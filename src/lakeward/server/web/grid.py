"""Rows as a table of a page: the text of each cell, cut where it is long."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeward.sources.formats.nested_text import format_nested, is_nested
from lakeward.sources.formats.text_values import format_text
from lakeward.types.logical import DecimalType, LogicalType

LONGEST = 300
"""So many characters of a cell are sent; the rest is told in numbers."""

_NUMBERS = frozenset(("int", "long", "float", "double"))


@dataclass(frozen=True)
class GridColumn:
    """A column of a table.

    Args:
        name, type: its name, and its type as people write it.
        numeric: its cells stand to the right.
        key: it is of the primary key.
    """

    name: str
    type: str
    numeric: bool
    key: bool


@dataclass(frozen=True)
class Grid:
    """A table.

    Args:
        columns: in order.
        rows: the text of each cell; None is null.
    """

    columns: Sequence[GridColumn]
    rows: Sequence[Sequence[str | None]]


def grid(table: pa.Table, types: Mapping[str, LogicalType], key: Sequence[str] = ()) -> Grid:
    """Return rows as a table of a page.

    Args:
        table: the rows.
        types: of the columns, by name; others are shown as their Arrow type has them.
        key: names of the columns of the primary key.
    """
    columns = [_column(field, types.get(field.name), field.name in key) for field in table.schema]
    texts = [column_texts(table.column(each.name), types.get(each.name)) for each in columns]
    return Grid(columns, [[shortened(cell) for cell in row] for row in zip(*texts, strict=True)])


def column_texts(values: pa.ChunkedArray, type_: LogicalType | None) -> list[str | None]:
    """Return one column as text, whole."""
    whole = values.combine_chunks()
    formatted = format_nested(whole, type_) if type_ is not None and is_nested(type_) else format_text(whole)
    texts: list[str | None] = formatted.to_pylist()
    return texts


def shortened(text: str | None) -> str | None:
    """Return the text of a cell, cut where it is long."""
    if text is None or len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}… ({len(text):,} characters)"


def _column(field: pa.Field, type_: LogicalType | None, key: bool) -> GridColumn:
    numeric = isinstance(type_, DecimalType) or (type_ is not None and type_.kind in _NUMBERS)
    return GridColumn(field.name, str(type_ or field.type), numeric or pa.types.is_integer(field.type), key)
