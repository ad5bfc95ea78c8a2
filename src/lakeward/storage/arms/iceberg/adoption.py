"""What another engine committed to a table: let a mere compaction pass, refuse the rest, or adopt it as a version."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from dataclasses import replace

import pyarrow as pa
from pyiceberg.table import Table

from lakeward.control.divergence import Compaction
from lakeward.control.ledger import Ledger
from lakeward.control.records import Counts
from lakeward.errors import ConflictError, DataError, Diverged
from lakeward.storage.arm import Prepared, WriteTask
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.foreign import diverged, head_of, refused_columns, refused_rows
from lakeward.storage.arms.iceberg.foreign_rows import ForeignRows, Numbering
from lakeward.storage.arms.iceberg.scans import files_of
from lakeward.storage.arms.iceberg.stores import store_of
from lakeward.storage.arms.iceberg.tables import VERSION_PROPERTY, Tables
from lakeward.storage.arms.iceberg.unnumbered import with_identity_columns
from lakeward.storage.table import TableRef

WriteRows = Callable[[WriteTask, Table, int, Iterable[pa.RecordBatch], int], tuple[int, int]]
"""Writes rows that take the place of a snapshot's, under the columns of another one; returns the new snapshot and the
one that it goes on from."""


class Adoption:
    """Sees to it that no write goes on from what another engine did, but for what changes no row.

    Args:
        tables: where the tables are.
        rows: compares the rows of snapshots.
        ledger: keeps what was found.
    """

    def __init__(self, tables: Tables, rows: ForeignRows, ledger: Ledger) -> None:
        self._tables = tables
        self._rows = rows
        self._ledger = ledger

    def open(self, task: WriteTask) -> tuple[WriteTask, Table, int]:
        """Return the task as it is to be done, the table, and the snapshot that the new one goes on from."""
        table = task.table
        if task.parent is None:
            loaded = self._tables.give_birth(table, task.transaction.writer)
            root = loaded.current_snapshot()
            # An aborted first write leaves an empty table; anything else in it was not written by us.
            if root is None or root.summary is None or root.summary.get(VERSION_PROPERTY) != "0":
                raise Diverged(
                    f"the Iceberg table {'.'.join(loaded.name())} of dataset {table.name} holds rows that the ledger "
                    "doesn't know",
                    safe="they were not touched",
                    next_step="rename that table in the catalog, then repeat the write",
                    dataset=table.name,
                )
            return task, loaded, root.snapshot_id
        loaded, parent = self._tables.load(table), task.parent.snapshot_id
        assert parent is not None
        head = head_of(loaded, parent)
        if head is None:
            return task, loaded, parent
        digest = self._rows.compaction(loaded, table, parent, head)
        if digest is None or head.snapshot is None:
            raise diverged(table, loaded, parent, head)
        transaction = task.compacted(Compaction(head.snapshot, task.parent, (digest.high, digest.low)))
        self._log_compaction(table, task.transaction.version, head.snapshot)
        return replace(task, transaction=transaction), loaded, head.snapshot

    def accept(self, table: TableRef, version: int, written_with: int | None = None) -> branches.Accept:
        """Return what lets a commit go on from a compaction of the snapshot that it should go on from."""
        known: set[tuple[int | None, int | None]] = set()

        def accept(loaded: Table, parent: int | None) -> int | None:
            head = head_of(loaded, parent, written_with)
            if head is None:
                return parent
            if (parent, head.snapshot) not in known:
                if parent is None or self._rows.compaction(loaded, table, parent, head) is None:
                    raise diverged(table, loaded, parent, head)
                known.add((parent, head.snapshot))
                self._log_compaction(table, version, head.snapshot)
            return head.snapshot

        return accept

    def _log_compaction(self, table: TableRef, version: int, snapshot: int | None) -> None:
        self._ledger.log_sync(table.dataset_id, version, "compacted", table.identifier, snapshot)

    def _refuse_outside(self, table: TableRef, loaded: Table, snapshot: int) -> None:
        """Refuse files outside of the warehouse, which nobody would keep for us, nor remove."""
        store = store_of(loaded, f"dataset {table.name}")
        _, tasks = files_of(loaded, snapshot)
        for file in itertools.chain.from_iterable((task.file, *task.delete_files) for task in tasks):
            if not store.is_below(file.file_path, self._tables.warehouse):
                raise DataError(
                    f"dataset {table.name}: the other engine's snapshot {snapshot} has the file {file.file_path}, "
                    "which is not in the warehouse",
                    safe="nothing was changed",
                    next_step=f"`lakeward ledger adopt {table.name} --renumber` copies its rows into files of our own",
                    dataset=table.name,
                )

    def adopt(self, task: WriteTask, found: int, write: WriteRows) -> Prepared:
        """Take a foreign snapshot as the version, or its rows with a sound identity on the version's branch.

        Args:
            task: the write.
            found: the snapshot that `main` was seen at.
            write: how the rows with a sound identity are written.

        Raises:
            ConflictError: `main` is somewhere else.
            ColumnMismatch, DataError: the snapshot can't be taken as it is.
        """
        table, transaction, held = task.table, task.transaction, task.parent
        assert held is not None and held.snapshot_id is not None, "what was never written can't diverge"
        ours, loaded = held.snapshot_id, self._tables.load(table)
        head = head_of(loaded, ours)
        if head is None or head.snapshot != found:
            raise ConflictError(
                f"main of the Iceberg table of dataset {table.name} has moved on from snapshot {found}",
                safe="nothing was changed",
                next_step=f"`lakeward ledger adopt {table.name} --dry-run` shows where it is now",
                dataset=table.name,
                found=head.snapshot if head is not None else ours,
            )
        if head.columns:
            raise refused_columns(table, head)
        next_ids = (transaction.next_row_id, transaction.next_row_index)
        survey = self._rows.survey(loaded, table, ours, found, transaction.version, next_ids)
        digest = self._rows.digest(loaded, table, found)
        adopted = Prepared(
            counts=Counts(
                rows_in=survey.rows,
                added=survey.added,
                updated=survey.updated,
                unchanged=survey.unchanged,
                deleted=survey.deleted,
                skipped=0,
                row_count=survey.rows,
            ),
            next_row_id=survey.next_row_id,
            next_row_index=survey.next_row_index,
            rebases=True,
            publishes=False,
            snapshot_id=found,
            parent_snapshot_id=ours,
            digest=(digest.high, digest.low),
        )
        if transaction.verb != "renumber":
            if survey.unsound:
                raise refused_rows(table, survey.unsound)
            self._refuse_outside(table, loaded, found)
            return adopted
        task.check()
        numbering = Numbering(survey.next_row_id, survey.next_row_index, transaction.opened_at, transaction.version)
        loaded = with_identity_columns(lambda: self._tables.load(table), f"dataset {table.name}")
        rows = self._rows.renumbered(loaded, table, ours, found, numbering)
        snapshot, parent = write(task, loaded, found, rows, ours)
        return replace(
            adopted,
            next_row_id=numbering.row_id,
            next_row_index=numbering.row_index,
            publishes=True,
            snapshot_id=snapshot,
            parent_snapshot_id=parent,
        )
