"""The first rows of a version, in the order of their position, without reading the rest where that can be helped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.storage.arm import Scan
from lakeward.storage.filters import below
from lakeward.storage.routing import Place
from lakeward.storage.table import TableRef
from lakeward.types.schema import ROW_INDEX

FIRST_POSITIONS = 65_536
"""A filter is tried on so many positions before it is tried on all of them."""


def first_rows(place: Place, table: TableRef, scan: Scan, count: int, positions: int | None) -> pa.Table:
    """Return the `count` rows of least `__row_index` of those that a scan gives, in that order.

    Args:
        place: the arm and version to read.
        table: the dataset.
        scan: which rows and columns; the identity columns are needed.
        count: how many rows at most; more than that, and a batch, are never held.
        positions: every `__row_index` of the version is less; None: not known.
    """
    found = None
    for bound in _bounds(count, scan.where is not None, positions):
        part = scan if bound is None else replace(scan, where=below(scan.where, bound))
        found = _least(place.arm.scan(table, place.version, part), count)
        if found.num_rows == count:
            break
    assert found is not None, "the last bound is always there"
    return found


def _bounds(count: int, filtered: bool, positions: int | None) -> Iterator[int | None]:
    """Yield how far to look. Positions have gaps where rows were deleted, so one look may not be enough."""
    for bound in (FIRST_POSITIONS,) if filtered else (count, FIRST_POSITIONS):
        if bound >= count and (positions is None or bound < positions):
            yield bound
    yield None


def _least(reader: pa.RecordBatchReader, count: int) -> pa.Table:
    kept = reader.schema.empty_table()
    for batch in reader:
        found = pa.Table.from_batches([batch])
        if kept.num_rows == count:
            found = found.filter(pc.less(found[ROW_INDEX], kept[ROW_INDEX][-1]))
        if found.num_rows:
            kept = pa.concat_tables([kept, found]).sort_by(ROW_INDEX).slice(0, count)
    return kept
