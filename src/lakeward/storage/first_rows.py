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


def first_rows(
    place: Place, table: TableRef, scan: Scan, count: int, positions: int | None, start: int = 0
) -> pa.Table:
    """Return the `count` rows of least `__row_index` of those that a scan gives, in that order.

    Args:
        place: the arm and version to read.
        table: the dataset.
        scan: which rows and columns; the identity columns are needed.
        count: how many rows at most; more than that, and a batch, are never held.
        positions: every `__row_index` of the version is less; None: not known.
        start: every `__row_index` that the scan gives is at least this.
    """
    found = None
    # A filter on the position alone, which says where to start, leaves no gaps.
    filtered = scan.where is not None and scan.where.columns != (ROW_INDEX,)
    for width in _widths(count, filtered, None if positions is None else positions - start):
        bound = None if width is None else start + width
        part = scan if bound is None else replace(scan, where=below(scan.where, bound))
        found = _least(place.arm.scan(table, place.version, part), count)
        if found.num_rows == count:
            break
    assert found is not None, "the last bound is always there"
    return found


def _widths(count: int, filtered: bool, positions: int | None) -> Iterator[int | None]:
    """Yield on how many positions to look. Where rows were deleted they have gaps, so one look may not be enough."""
    for width in (FIRST_POSITIONS,) if filtered else (count, FIRST_POSITIONS):
        if width >= count and (positions is None or width < positions):
            yield width
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
