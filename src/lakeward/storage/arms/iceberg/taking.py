"""Takes a table that was there as a dataset's first version, and gives its rows their identity columns later.

Taking changes the table's properties, and nothing else: the version is the snapshot that `main` is at. Its rows have no
identity columns, so one is made for them when they are read (see `unnumbered`). Whatever writes to the dataset, or
copies it, first makes a version of the same rows with these numbers in the files: so none of the code that writes has
to know of rows without them, and no number changes.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
from pyiceberg.table import Table
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.update import AssertRefSnapshotId, SetPropertiesUpdate

from lakeward.control.identifiers import TableIdentifier
from lakeward.control.records import Counts
from lakeward.errors import CatalogError, ConflictError
from lakeward.storage.arm import NothingToWrite, Prepared, Scan, WriteTask
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.adoption import Adoption
from lakeward.storage.arms.iceberg.scans import files_of, plan
from lakeward.storage.arms.iceberg.snapshots import Snapshots
from lakeward.storage.arms.iceberg.tables import DATASET_PROPERTY, VERSION_PROPERTY, Tables
from lakeward.storage.arms.iceberg.transactions import LeanTransaction
from lakeward.storage.arms.iceberg.trouble import settle
from lakeward.storage.arms.iceberg.unnumbered import ADOPTED_AT, Unnumbered, with_identity_columns
from lakeward.storage.duck import Duck
from lakeward.storage.existing import IDENTIFY, TAKE
from lakeward.storage.filters import quote_list
from lakeward.storage.identity import with_identity
from lakeward.storage.table import TableRef
from lakeward.types.table import arrow_schema

TAKING = (TAKE, IDENTIFY)
"""The verbs that are carried out here."""

Count = Callable[[Table, TableRef, int], int]
"""Counts the rows of a snapshot that are not deleted."""


class Taking:
    """Does both for one workspace's tables.

    Args:
        tables: where they are.
        adoption: sees whether another engine wrote to one meanwhile.
        snapshots: makes snapshots.
        duck: reads rows.
        count: counts them.
    """

    def __init__(self, tables: Tables, adoption: Adoption, snapshots: Snapshots, duck: Duck, count: Count) -> None:
        self._tables = tables
        self._adoption = adoption
        self._snapshots = snapshots
        self._duck = duck
        self._count = count

    def prepare(self, task: WriteTask) -> Prepared | NothingToWrite:
        """Do what the task's verb says."""
        return self._take(task) if task.transaction.verb == TAKE else self._identify(task)

    def _take(self, task: WriteTask) -> Prepared:
        """Make the table the dataset's own, as it is.

        Args:
            task: `adopts` is the snapshot that was looked at; None: the table had none.

        Raises:
            ConflictError: it is another dataset's, or has moved on since it was looked at.
        """
        table = task.table
        loaded = settle(f"dataset {table.name}", lambda: self._owned(task))
        head = loaded.current_snapshot()
        assert head is not None, "a table without a snapshot was given one"
        view, _ = files_of(loaded, head.snapshot_id)
        numbers = view.numbers if isinstance(view, Unnumbered) else 0
        rows = self._count(loaded, table, head.snapshot_id)
        return Prepared(
            counts=Counts(rows, added=rows, updated=0, unchanged=0, deleted=0, skipped=0, row_count=rows),
            next_row_id=numbers,
            next_row_index=numbers,
            rebases=True,
            publishes=False,
            snapshot_id=head.snapshot_id,
            identifier=TableIdentifier.of(loaded.name()),
        )

    def _owned(self, task: WriteTask) -> Table:
        """Let the table say whose it is, under the condition that it has not moved on."""
        table = task.table
        loaded = self._tables.at(table, table.identifier)
        if loaded is None:
            raise CatalogError(f"the table {table.identifier} is not in the catalog any more", dataset=table.name)
        owner, head = loaded.properties.get(DATASET_PROPERTY), loaded.current_snapshot()
        if owner is not None and owner != str(table.uid):
            raise ConflictError(
                f"the Iceberg table {table.identifier} belongs to another dataset since", safe="it was not touched"
            )
        found = head.snapshot_id if head is not None else None
        summary = head.summary if head is not None else None
        empty = task.adopts is None and summary is not None and summary.get(VERSION_PROPERTY) == "0"
        if found != task.adopts and not empty:
            raise ConflictError(
                f"the Iceberg table {table.identifier} has moved on to snapshot {found} since it was looked at",
                safe="nothing was changed",
                next_step="repeat it when no other engine writes to it",
                dataset=table.name,
                found=found,
            )
        if owner is None:
            transaction = LeanTransaction(loaded)
            moment = head.timestamp_ms if head is not None else loaded.metadata.last_updated_ms
            ours = {DATASET_PROPERTY: str(table.uid), "gc.enabled": "false", ADOPTED_AT: str(moment)}
            still = {"ref": MAIN_BRANCH, "snapshot-id": found}
            transaction._apply((SetPropertiesUpdate(updates=ours),), (AssertRefSnapshotId.model_validate(still),))
            transaction.commit_transaction()
            loaded = self._tables.load(table)
        if loaded.current_snapshot() is None:
            branches.commit_root(loaded, {DATASET_PROPERTY: str(table.uid), VERSION_PROPERTY: "0"})
            loaded = self._tables.load(table)
        return loaded

    def _identify(self, task: WriteTask) -> Prepared | NothingToWrite:
        """Write the rows anew, with the identity columns that they were read with; nothing if they have them.

        Raises:
            Diverged: another engine wrote to the table.
        """
        table, transaction = task.table, task.transaction
        if task.parent is None or task.parent.version != transaction.parent_version:
            return NothingToWrite()
        task, loaded, parent = self._adoption.open(task)
        view, _ = files_of(loaded, parent)
        if not isinstance(view, Unnumbered):
            return NothingToWrite(unchanged=transaction.parent_row_count)
        loaded = with_identity_columns(lambda: self._tables.load(table), f"dataset {table.name}")
        target = with_identity(arrow_schema(table.schema))
        files = plan(loaded, parent, table.schema, set(target.names), Scan(table.schema.names, identity=True))
        rows = pa.RecordBatchReader.from_batches(target, iter(()))
        if files is not None:
            sql = f"SELECT {quote_list(target.names)} FROM ({files.sql})"
            rows = self._duck.stream(sql, target, files.tables)
        written = self._snapshots.write(task, loaded, parent, rows, replaces=True)
        return Prepared(
            counts=Counts(written.rows, 0, 0, unchanged=written.rows, deleted=0, skipped=0, row_count=written.rows),
            next_row_id=transaction.next_row_id,
            next_row_index=transaction.next_row_index,
            rebases=False,
            publishes=True,
            snapshot_id=written.snapshot,
            parent_snapshot_id=written.parent,
            identifier=TableIdentifier.of(loaded.name()),
        )
