"""Makes the snapshot of a version on its branch, of rows or of a change that is prepared."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.table import Table

from lakeward.clock import Faults
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.transaction_kinds import VERSIONLESS_KINDS
from lakeward.storage.arm import WriteTask
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.adoption import Adoption
from lakeward.storage.arms.iceberg.files import RollingWriter
from lakeward.storage.arms.iceberg.producers import Appends, Change, Replaces
from lakeward.storage.arms.iceberg.tables import BUILD_PROPERTY, DATASET_PROPERTY, VERSION_PROPERTY, Tables


@dataclass(frozen=True)
class Written:
    """A prepared snapshot, the one that it goes on from, and its number of new rows."""

    snapshot: int
    parent: int
    rows: int


class Snapshots:
    """Prepares snapshots.

    Args:
        tables: where the tables are.
        adoption: says what may have come in between.
        target_bytes: a data file is closed at this size.
        faults: called between the steps.
    """

    def __init__(self, tables: Tables, adoption: Adoption, target_bytes: int, faults: Faults) -> None:
        self._tables = tables
        self._adoption = adoption
        self._target_bytes = target_bytes
        self._faults = faults

    def write(
        self,
        task: WriteTask,
        loaded: Table,
        parent: int,
        rows: Iterable[pa.RecordBatch],
        *,
        replaces: bool,
        written_with: int | None = None,
    ) -> Written:
        """Write rows that have their identity columns to data files, and those into a snapshot on a branch.

        Args:
            task: the write.
            loaded: its table.
            parent: the snapshot that it goes on from.
            rows: business columns with the identity columns behind.
            replaces: they take the place of all rows.
            written_with: the snapshot whose columns they have, if not those of the table.
        """
        what = f"dataset {task.table.name}"
        prefix = f"{task.transaction.version:08d}"
        writer = RollingWriter(loaded, prefix, self._target_bytes, what, task.table.schema)
        writer.write_all(rows, task.check)
        self._faults.at("prepare:files")
        change = Replaces(writer.files) if replaces else Appends(writer.files)
        snapshot, start = self.commit(task, loaded, parent, change, written_with)
        return Written(snapshot, start, writer.rows)

    def write_adopted(
        self, task: WriteTask, loaded: Table, parent: int, rows: Iterable[pa.RecordBatch], written_with: int
    ) -> tuple[int, int]:
        """Write rows in place of a foreign snapshot's; return the snapshot, and the one that it goes on from."""
        written = self.write(task, loaded, parent, rows, replaces=True, written_with=written_with)
        return written.snapshot, written.parent

    def commit(
        self, task: WriteTask, loaded: Table, parent: int, change: Change, written_with: int | None = None
    ) -> tuple[int, int]:
        """Make a snapshot on the version's branch; return it, and the one that it goes on from."""
        transaction = task.transaction
        table = replace(task.table, identifier=TableIdentifier.of(loaded.name()))
        found = branches.prepare(
            lambda: self._tables.load(table),
            table,
            transaction.version,
            parent,
            change,
            properties={
                DATASET_PROPERTY: str(table.uid),
                VERSION_PROPERTY: str(transaction.version),
                BUILD_PROPERTY: str(transaction.build_id),
            },
            accept=self._adoption.accept(table, transaction.version, written_with),
            number=transaction.id if transaction.kind in VERSIONLESS_KINDS else None,
        )
        self._faults.at("prepare:committed")
        return found
