"""What changed between two versions, as rows to be looked at: each with what became of it, and its cells before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from lakeward.server.web.grid import GridColumn, grid
from lakeward.types.schema import OP, ROW_ID
from lakeward.wiring.dataset import Dataset

MOST = 400
"""So many changes are shown; an update counts for two."""


@dataclass(frozen=True)
class ChangedRow:
    """One row.

    Args:
        what: `insert`, `update` or `delete`.
        cells: the text of each as it is now; of a deleted row, as it was last.
        before: the text of each as it was before, where it differs; None elsewhere.
        differs: which cells differ.
    """

    what: str
    cells: Sequence[str | None]
    before: Sequence[str | None]
    differs: Sequence[bool]


@dataclass(frozen=True)
class Changes:
    """What changed.

    Args:
        columns: of the rows.
        rows: the first of them.
        more: whether there are more.
    """

    columns: Sequence[GridColumn]
    rows: Sequence[ChangedRow]
    more: bool

    def count(self, what: str) -> int:
        """Return how many of the rows that are shown were inserted, updated or deleted."""
        return sum(each.what == what for each in self.rows)


def changes_of(dataset: Dataset, since: int, version: int, most: int = MOST) -> Changes:
    """Return the first changes between two versions.

    Args:
        dataset: whose.
        since, version: the older and the newer one.
        most: so many at most.

    Raises:
        UnknownVersion: one of them can't be read.
        UsageError: they are the wrong way round.
    """
    table, more = _first(dataset.changes(since, version, identity=True), most)
    schema = dataset.schema
    types = {column.name: column.type for column in schema.columns}
    operations, ids = table[OP].to_pylist(), table[ROW_ID].to_pylist()
    shown = grid(table.select(_in_order(table, schema.names, schema.primary_key)), types, schema.primary_key)
    before = {
        id_: row for id_, operation, row in zip(ids, operations, shown.rows, strict=True) if operation == "before"
    }
    rows = []
    for id_, operation, row in zip(ids, operations, shown.rows, strict=True):
        if operation == "before":
            continue
        old = before.get(id_) if operation == "update" else None
        differs = [old is not None and a != b for a, b in zip(row, old or row, strict=True)]
        rows.append(ChangedRow(operation, row, old or row, differs))
    return Changes(shown.columns, rows, more)


def _in_order(table: pa.Table, names: Sequence[str], key: Sequence[str]) -> list[str]:
    """Return the columns, those first that tell which row it is and what of it changed."""
    place = {id_: row for row, id_ in enumerate(_ids(table, "before"))}
    after = table.filter(pc.equal(table[OP], "update"))
    pairs = [(place[id_], row) for row, id_ in enumerate(after[ROW_ID].to_pylist()) if id_ in place]
    old = table.filter(pc.equal(table[OP], "before")).take(pa.array([each for each, _ in pairs], pa.int64()))
    new = after.take(pa.array([each for _, each in pairs], pa.int64()))
    changed = [name for name in names if name not in key and not new[name].equals(old[name])]
    return [*key, *changed, *(name for name in names if name not in key and name not in changed)]


def _ids(table: pa.Table, operation: str) -> list[int]:
    found: list[int] = table.filter(pc.equal(table[OP], operation))[ROW_ID].to_pylist()
    return found


def _first(reader: pa.RecordBatchReader, most: int) -> tuple[pa.Table, bool]:
    batches: list[pa.RecordBatch] = []
    left = most
    with reader:
        for batch in reader:
            if batch.num_rows > left:
                batches.append(batch.slice(0, left))
                return pa.Table.from_batches(batches, reader.schema), True
            batches.append(batch)
            left -= batch.num_rows
    return pa.Table.from_batches(batches, reader.schema), False
