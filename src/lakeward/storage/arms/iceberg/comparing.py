"""Tells rows of a keyed write that differ from those that don't, by as few columns as will do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyiceberg.table import FileScanTask

from lakeward.storage.arms.iceberg.deletes import FILE_SHIFT
from lakeward.storage.staged_batch import alias
from lakeward.types.schema import NESTED_KINDS, Column, Schema
from lakeward.types.table import digest_pieces, joined

FIRST_SHARE = 0.15
FIRST_COLUMNS = 2
"""So many columns, and so much of the files' bytes, are read to tell rows apart before the rest is."""

PIECE_ROWS = 8_192
"""Neighbouring rows of a file that are compared in the same query."""

PART_SHARE = 1 / 16
MOST_PART_ROWS = 1 << 20
"""So much of the memory limit is taken by the rows that are compared in one query. Each is read from a file and joined
twice: joins spill one by one, but not those of one query together, so that what they hold has to be small."""


@dataclass
class Part:
    """Rows that are compared in one query.

    Args:
        low, high: the least and the greatest place, `file << FILE_SHIFT | row`, of any of them.
        files: the numbers of their files, ascending.
    """

    low: int
    high: int
    files: list[int]


def part_rows(memory_limit: int, rows: int, size: int) -> int:
    """Return how many rows are compared in one query.

    Args:
        memory_limit: bytes that DuckDB may use.
        rows, size: of the batch: how many it has, and their bytes in memory.
    """
    return min(max(int(memory_limit * PART_SHARE * rows / max(size, 1)), PIECE_ROWS), MOST_PART_ROWS)


def parts_of(pieces: Iterable[tuple[int, ...]], most_rows: int) -> list[Part]:
    """Return the parts that rows are compared in.

    Args:
        pieces: the number of a file, that of a piece in it, and how many of its `PIECE_ROWS` rows are compared;
            ascending.
        most_rows: of one part, unless it is a single piece.
    """
    parts: list[Part] = []
    rows = 0
    for number, piece, count in pieces:
        low = (number << FILE_SHIFT) + piece * PIECE_ROWS
        if not parts or rows + count > most_rows:
            parts.append(Part(low, low, []))
            rows = 0
        part = parts[-1]
        part.high = low + PIECE_ROWS - 1
        if number not in part.files[-1:]:
            part.files.append(number)
        rows += count
    return parts


def told_apart(schema: Schema, tasks: Sequence[FileScanTask]) -> tuple[Sequence[Column], Sequence[Column]]:
    """Return the columns to compare first, and the others.

    First come those that say most for few bytes: the largest ones that are small beside all others. A flag is cheap,
    but rows that differ in it are few.

    Args:
        schema: the dataset's columns; those of the key need not be compared.
        tasks: the files.
    """
    others = [column for column in schema.columns if column.name not in schema.primary_key]
    sizes: dict[int, int] = defaultdict(int)
    for task in tasks:
        for field_id, size in (task.file.column_sizes or {}).items():
            sizes[field_id] += size
    known = sorted((column for column in others if sizes[column.field_id]), key=lambda each: -sizes[each.field_id])
    left = sum(sizes[column.field_id] for column in known) * FIRST_SHARE
    first: list[Column] = []
    for column in known:
        if sizes[column.field_id] <= left and len(first) < FIRST_COLUMNS:
            left -= sizes[column.field_id]
            first.append(column)
    if not first:
        return others, ()
    return first, [column for column in others if column not in first]


def differs(columns: Sequence[Column], old: str, new: str) -> str:
    """Return the DuckDB condition that the canonical texts of two rows differ in some columns.

    DuckDB's own comparison says so of each value that is not nested, for a fraction of the cost: it takes NaN for equal
    to NaN, and -0.0 to 0.0, as the canonical text does.

    Args:
        columns: the columns; if there are none, rows don't differ.
        old, new: what is put before their names.
    """
    parts: list[str] = []
    for column in columns:
        before, after = old + alias(column), new + alias(column)
        if column.type.kind in NESTED_KINDS:
            texts = (joined(digest_pieces(column.type, value)) for value in (before, after))
            parts.append(" <> ".join(texts))
        else:
            parts.append(f"{before} IS DISTINCT FROM {after}")
    return f"({' OR '.join(parts) or 'false'})"
