"""Another engine at a dataset's Iceberg table: PyIceberg through a catalog client of its own, with nothing of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH

import lakeward
from lakeward.clock import Faults

Rows = list[dict[str, Any]]


class OtherEngine:
    """Writes to the table of one dataset as Spark or Trino would, who know nothing of a ledger."""

    def __init__(self, workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> None:
        record = dataset.record
        assert record.iceberg_namespace is not None, "it has been written to an Iceberg table before"
        self._identifier = record.identifier.parts
        self._catalog = SqlCatalog("lakeward", uri=workspace.database.sqlalchemy_url, warehouse="file:///nowhere")

    @property
    def table(self) -> Table:
        """The table as it is now."""
        return self._catalog.load_table(self._identifier)

    @property
    def main(self) -> int:
        """The snapshot that `main` is at."""
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    @property
    def refs(self) -> dict[str, int]:
        """Every branch and tag but `main`."""
        refs = self.table.metadata.refs
        return {name: ref.snapshot_id for name, ref in refs.items() if name != MAIN_BRANCH}

    def rows(self, snapshot: int | None = None) -> Rows:
        """Every row with its identity columns, by position."""
        found: Rows = self.table.scan(snapshot_id=snapshot).to_arrow().to_pylist()
        return sorted(found, key=lambda row: (row["__row_index"] is None, row["__row_index"], row["id"]))

    def arrow(self, rows: Rows) -> pa.Table:
        return pa.Table.from_pylist(rows, self.table.schema().as_arrow())

    def append(self, *changes: Mapping[str, Any]) -> int:
        """Append copies of the first row, each with changes."""
        first = self.rows()[0]
        self.table.append(self.arrow([{**first, **change} for change in changes]))
        return self.main

    def rewrite(self, change: Callable[[Rows], Rows] = list) -> int:
        """Write every row anew, changed or (compaction) as they are."""
        self.table.overwrite(self.arrow(change(self.rows())))
        return self.main

    def compact(self) -> int:
        """Write every row anew, in another order, to files of its own."""
        return self.rewrite(lambda rows: rows[::-1])

    def delete(self, where: str) -> int:
        self.table.delete(where)
        return self.main

    def set_main(self, snapshot: int) -> int:
        with self.table.manage_snapshots() as manage:
            manage.create_branch(snapshot, MAIN_BRANCH)
        return self.main

    def parent(self, snapshot: int) -> int:
        found = self.table.metadata.snapshot_by_id(snapshot)
        assert found is not None and found.parent_snapshot_id is not None
        return found.parent_snapshot_id

    def descends(self, snapshot: int, ancestor: int) -> bool:
        metadata = self.table.metadata
        at = metadata.snapshot_by_id(snapshot)
        while at is not None and at.snapshot_id != ancestor:
            at = metadata.snapshot_by_id(at.parent_snapshot_id) if at.parent_snapshot_id is not None else None
        return at is not None


class Interruptions(Faults):
    """Lets another engine in at a point of a write, once."""

    def __init__(self) -> None:
        self._waiting: dict[str, Callable[[], object]] = {}

    def once(self, point: str, call: Callable[[], object]) -> None:
        self._waiting[point] = call

    def at(self, point: str) -> None:
        call = self._waiting.pop(point, None)
        if call is not None:
            call()
