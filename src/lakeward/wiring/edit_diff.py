"""What an edit of rows changes, and which of that somebody else changed, too. Pure: it reads and writes nothing.

Rows are compared by their cells' text, which is exact and one for each value (see `text_values` and `nested_text`), and
matched by the primary key, or by `__row_id` where a dataset has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeward.errors import DuplicateKey, ValueRefused
from lakeward.sources.formats.nested_text import format_nested, is_nested
from lakeward.sources.formats.text_values import format_text
from lakeward.types.logical import LogicalType, simple
from lakeward.types.schema import FLOAT_KINDS, ROW_ID, Column, Schema

Texts = tuple[str | None, ...]
"""The text of some cells of a row; None is null."""


def sheet_schema(schema: Schema) -> Schema:
    """Return the columns that people see: those of the dataset, and `__row_id` in front where there is no key."""
    if schema.primary_key:
        return schema
    return Schema((Column(ROW_ID, simple("long"), 0), *schema.columns))


def matched_by(schema: Schema) -> tuple[str, ...]:
    """Return the columns that rows of a dataset are matched by."""
    return schema.primary_key or (ROW_ID,)


def column_text(table: pa.Table | pa.RecordBatch, column: Column) -> pa.Array:
    """Return one column of a table as text."""
    values = table.column(column.name)
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    return format_nested(values, column.type) if is_nested(column.type) else format_text(values)


class Rows:
    """Rows as they are edited.

    Args:
        table: the columns of `sheet_schema(schema)`; in a new row of a dataset without a key, `__row_id` is null.
        schema: the dataset's.
    """

    def __init__(self, table: pa.Table, schema: Schema) -> None:
        self.table = table
        self.schema = schema
        self.texts = cells(table, schema.names, schema)
        self.keys = cells(table, matched_by(schema), schema)

    def __len__(self) -> int:
        return len(self.texts)

    def take(self, rows: Sequence[int]) -> Rows:
        """Return some of them, by their numbers from 0."""
        return Rows(self.table.take(pa.array(rows, pa.int64())), self.schema)

    def named(self, row: int) -> dict[str, str | None]:
        """Return all cells of a row by column."""
        return dict(zip(self.schema.names, self.texts[row], strict=True))

    def key(self, row: int) -> dict[str, str | None]:
        """Return what a row is matched by, by column."""
        return dict(zip(matched_by(self.schema), self.keys[row], strict=True))


def cells(table: pa.Table | pa.RecordBatch, names: Sequence[str], schema: Schema) -> list[Texts]:
    """Return the text of some columns, row by row. -0.0 is 0.0, as everywhere where rows are compared."""
    seen = sheet_schema(schema)
    columns = [(seen.column(name), column_text(table, seen.column(name)).to_pylist()) for name in names]
    plain = [[_unsigned(text, column.type) for text in texts] for column, texts in columns]
    return list(zip(*plain, strict=True))


def _unsigned(text: str | None, type_: LogicalType) -> str | None:
    return "0.0" if text == "-0.0" and type_.kind in FLOAT_KINDS else text


@dataclass(frozen=True)
class Edit:
    """What people made of rows. Numbers of rows count from 0.

    Args:
        version: the one that the rows were read at.
        base: the rows as they were read.
        edited: the rows as they are to be.
        added: rows of `edited`.
        changed: pairs of a row of `base` and the one of `edited` that takes its place.
        removed: rows of `base`.
    """

    version: int
    base: Rows
    edited: Rows
    added: tuple[int, ...]
    changed: tuple[tuple[int, int], ...]
    removed: tuple[int, ...]

    @property
    def empty(self) -> bool:
        """Whether nothing was changed."""
        return not (self.added or self.changed or self.removed)

    def differences(self, pair: tuple[int, int]) -> dict[str, tuple[str | None, str | None]]:
        """Return the cells of a changed row that differ, by column: before and after."""
        before, after = self.base.texts[pair[0]], self.edited.texts[pair[1]]
        named = zip(self.base.schema.names, before, after, strict=True)
        return {name: (old, new) for name, old, new in named if old != new}

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it: the text of cells, null for null."""
        return {
            "added": [self.edited.named(row) for row in self.added],
            "changed": [
                {
                    "key": self.base.key(pair[0]),
                    "columns": {
                        name: {"before": old, "after": new} for name, (old, new) in self.differences(pair).items()
                    },
                }
                for pair in self.changed
            ],
            "removed": [{**self.base.key(row), **self.base.named(row)} for row in self.removed],
        }


def difference(version: int, base: Rows, edited: Rows, dataset: str) -> Edit:
    """Return what is to be done with the rows of `base` so that they become those of `edited`.

    Raises:
        DuplicateKey: two rows of `edited` are matched by the same.
        ValueRefused: a row has no key, or a `__row_id` that is none of those of `base`.
    """
    places = {key: row for row, key in enumerate(base.keys)}
    added: list[int] = []
    changed: list[tuple[int, int]] = []
    seen: set[Texts] = set()
    for row, key in enumerate(edited.keys):
        if not edited.schema.primary_key and key[0] is None:
            added.append(row)
            continue
        _check_key(edited, row, places, seen, dataset)
        seen.add(key)
        if key not in places:
            added.append(row)
        elif base.texts[places[key]] != edited.texts[row]:
            changed.append((places[key], row))
    removed = tuple(row for row, key in enumerate(base.keys) if key not in seen)
    return Edit(version, base, edited, tuple(added), tuple(changed), removed)


def _check_key(edited: Rows, row: int, places: Mapping[Texts, int], seen: set[Texts], dataset: str) -> None:
    key, named = edited.keys[row], edited.key(row)
    safe = "nothing was changed"
    if key in seen:
        raise DuplicateKey(
            f"dataset {dataset}: row {row + 1} has a key that another row has, too: {in_words(named)}",
            safe=safe,
            next_step="keep one row of each key" if edited.schema.primary_key else f"empty {ROW_ID} in a new row",
            dataset=dataset,
            where="input",
            keys=[named],
            count=1,
        )
    if None in key:
        column = next(name for name, text in named.items() if text is None)
        raise _refused(dataset, row, column, None, "is empty, and rows are matched by it", safe)
    if not edited.schema.primary_key and key not in places:
        raise _refused(dataset, row, ROW_ID, key[0], "is none of the rows that were read; empty it in a new row", safe)


def _refused(dataset: str, row: int, column: str, value: str | None, reason: str, safe: str) -> ValueRefused:
    shown = f": {value!r}" if value is not None else ""
    return ValueRefused(
        f"dataset {dataset}: row {row + 1}, column {column!r}{shown} {reason}",
        safe=safe,
        dataset=dataset,
        column=column,
        row=row + 1,
        value=value,
    )


def without_equal(edit: Edit) -> Edit:
    """Leave out rows that are removed and added again with the same cells, as when a dataset was replaced."""
    gone = Counter(edit.base.texts[row] for row in edit.removed)
    kept = gone & Counter(edit.edited.texts[row] for row in edit.added)
    removed = _beyond(edit.removed, edit.base.texts, Counter(kept))
    added = _beyond(edit.added, edit.edited.texts, Counter(kept))
    return Edit(edit.version, edit.base, edit.edited, added, edit.changed, removed)


def _beyond(rows: Sequence[int], texts: Sequence[Texts], spare: Counter[Texts]) -> tuple[int, ...]:
    left = []
    for row in rows:
        if spare[texts[row]]:
            spare[texts[row]] -= 1
        else:
            left.append(row)
    return tuple(left)


@dataclass(frozen=True)
class Conflict:
    """A row that an edit changes and that somebody else changed since it was read; None: there is no such row.

    Args:
        key: what it is matched by.
        read, now, yours: its cells by column: as it was read, as it is, and as the edit would have it.
    """

    key: dict[str, str | None]
    read: dict[str, str | None] | None
    now: dict[str, str | None] | None
    yours: dict[str, str | None] | None

    def __str__(self) -> str:
        return f"{in_words(self.key)}: now {self._side(self.now)}, yours {self._side(self.yours)}"

    def _side(self, side: dict[str, str | None] | None) -> str:
        """Return one of the two sides: the cells in which not all of them agree."""
        if side is None:
            return "removed"
        others = [each for each in (self.read, self.now, self.yours) if each is not None]
        return in_words(
            {name: text for name, text in side.items() if any(each[name] != text for each in others)} or side
        )


def touched_keys(edit: Edit) -> set[Texts]:
    """Return what the rows that an edit changes are matched by, without new rows that have no `__row_id` yet."""
    new = {edit.edited.keys[row] for row in edit.added} - {(None,)}
    return new | {edit.base.keys[row] for row, _ in edit.changed} | {edit.base.keys[row] for row in edit.removed}


def conflicts(edit: Edit, head: Mapping[Texts, Texts]) -> list[Conflict]:
    """Return the rows that an edit and somebody else changed, each in another way.

    Args:
        edit: the edit.
        head: the cells of the dataset's rows now, by what they are matched by; only `touched_keys` are looked at.
    """
    # A new row of a dataset without a key can't be somebody else's.
    added = edit.added if edit.edited.schema.primary_key else ()
    found = [_conflict(edit, head, row, None) for row in edit.removed]
    found += [_conflict(edit, head, before, after) for before, after in edit.changed]
    found += [_conflict(edit, head, None, row) for row in added]
    return [each for each in found if each is not None]


def _conflict(edit: Edit, head: Mapping[Texts, Texts], before: int | None, after: int | None) -> Conflict | None:
    rows, row = (edit.base, before) if before is not None else (edit.edited, after)
    assert row is not None, "a row was there before, or is there after"
    now = head.get(rows.keys[row])
    read = edit.base.texts[before] if before is not None else None
    yours = edit.edited.texts[after] if after is not None else None
    if now in (read, yours):
        return None
    names = edit.base.schema.names
    sides = [None if texts is None else dict(zip(names, texts, strict=True)) for texts in (read, now, yours)]
    return Conflict(rows.key(row), *sides)


def in_words(cells_: Mapping[str, str | None]) -> str:
    """Return cells by column for a message: `id=1, note='a'`; null without quotes; long texts cut."""
    return ", ".join(f"{name}={shown(text)}" for name, text in cells_.items())


def shown(text: str | None) -> str:
    """Return a cell for a message: quoted, control characters escaped, cut at 60 characters; null plainly."""
    if text is None:
        return "null"
    return repr(text if len(text) <= 60 else f"{text[:59]}…")
