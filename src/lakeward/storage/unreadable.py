"""Finds the row whose stored value an arm can't read."""

from __future__ import annotations

from lakeward.errors import StorageError
from lakeward.storage.arm import Scan
from lakeward.storage.filters import within
from lakeward.storage.pairing import Sample, key_text
from lakeward.storage.routing import Place
from lakeward.storage.table import TableRef
from lakeward.types.refusal import show
from lakeward.types.schema import ROW_ID


def unreadable(place: Place, table: TableRef, column: str, span: tuple[int, int]) -> Sample:
    """Name the first row of a range of positions of which a column can't be read; there is one.

    Reads ever smaller halves, so about as much as the range twice.

    Args:
        place: the arm, and how it holds the version.
        table: the dataset.
        column: which one.
        span: the range.
    """
    start, end = span
    reason: StorageError | None = None
    while end - start > 1:
        middle = (start + end) // 2
        found = _refused(place, table, column, (start, middle))
        if found is not None:
            end, reason = middle, found
        else:
            start = middle
    reason = reason or _refused(place, table, column, (start, end))
    value = show(reason.fields.get("value")) if reason is not None else "?"
    return Sample(_key(place, table, column, start), "unreadable", column, {place.arm.name: value}, place.arm.name)


def _refused(place: Place, table: TableRef, column: str, span: tuple[int, int]) -> StorageError | None:
    rows = place.arm.scan(table, place.version, Scan((column,), where=within([span])))
    try:
        for _ in rows:
            pass  # each batch is decoded, and let go
    except StorageError as error:
        if error.fields.get("column") != column:
            raise
        return error
    return None


def _key(place: Place, table: TableRef, column: str, position: int) -> dict[str, str | None]:
    """Return the key of the row at a position; its `__row_id` if the column is part of the key, or there is none."""
    names = table.schema.primary_key if column not in table.schema.primary_key else ()
    where = within([(position, position + 1)])
    row = place.arm.scan(table, place.version, Scan(tuple(names), identity=True, where=where)).read_all().slice(0, 1)
    return {name: key_text(row[name][0]) for name in names or (ROW_ID,)}
