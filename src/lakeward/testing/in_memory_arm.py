"""An arm in this process's memory: the plain model that the other arms are compared with, and a quick one for tests."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

from lakeward.control.records import ArmVersion, Counts
from lakeward.errors import StorageError
from lakeward.storage.arm import ArmContext, Delta, NothingToWrite, Prepared, Scan, StorageArm, WriteTask
from lakeward.storage.duck import SOURCE
from lakeward.storage.filters import quote_identifier, quote_list
from lakeward.storage.identity import IdentityCounter, with_identity
from lakeward.storage.scans import KEYS, with_keys
from lakeward.storage.table import TableRef
from lakeward.storage.verbs import KEYED, VERBS
from lakeward.testing.in_memory_merge import merge, merged_rows
from lakeward.types.digest import Digest, digest_batches
from lakeward.types.schema import IDENTITY_COLUMNS, VERSION
from lakeward.types.table import arrow_schema

Rows = tuple[pa.RecordBatch, ...]
"""All rows of one version, business columns first and the identity columns behind."""


class InMemoryArm(StorageArm):
    """Rows in this process's memory; they end with it, and no other process sees them.

    Each version is a list of Arrow batches, which share their memory with the version before. Pass it to
    `open_workspace(extra_arms=[InMemoryArm])`; then `dataset.copy_to("memory")` brings a dataset here and
    `dataset.verify()` compares. It can't be a dataset's primary arm: routes name lasting places only.
    """

    name = "memory"

    def __init__(self, context: ArmContext) -> None:
        self._duck = context.duck
        self._faults = context.faults
        self._lock = threading.Lock()
        self._versions: dict[tuple[int, int], Rows] = {}

    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        """Keep the rows under the transaction's version; no reader of another version sees them."""
        transaction = task.transaction
        if transaction.verb in KEYED:
            return self._prepare_keyed(task, batches)
        copied = transaction.verb == "copy"
        replaces = copied or transaction.verb == "replace"
        counter = IdentityCounter(
            0 if replaces else transaction.next_row_index,
            transaction.next_row_id,
            transaction.opened_at,
            transaction.version,
        )
        kept = () if replaces or task.parent is None else self._rows(task.table, task.parent)
        new: list[pa.RecordBatch] = []
        for batch in batches:
            task.check()
            new.append(batch if copied else counter.number(batch))
            self._faults.at("prepare:chunk")
        with self._lock:
            self._versions[task.table.dataset_id, transaction.version] = (*kept, *new)
        written = sum(batch.num_rows for batch in new)
        added, unchanged = (0, written) if copied else (written, 0)
        return Prepared(
            counts=Counts(
                rows_in=written,
                added=added,
                updated=0,
                unchanged=unchanged,
                deleted=transaction.parent_row_count if transaction.verb == "replace" else 0,
                skipped=0,
                row_count=written + sum(batch.num_rows for batch in kept),
            ),
            next_row_id=transaction.next_row_id if copied else counter.row_id,
            next_row_index=transaction.next_row_index if copied else counter.row_index,
            rebases=replaces or task.parent is None,
            publishes=False,
            # A later version may be the same rows (a copy to another arm changes none), so the ledger remembers which.
            snapshot_id=transaction.version,
        )

    def _prepare_keyed(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        transaction = task.transaction
        kept = () if task.parent is None else self._rows(task.table, task.parent)
        old = pa.Table.from_batches(kept, with_identity(arrow_schema(task.table.schema)))
        new = pa.Table.from_batches(_until_lost(batches, task.check), batches.schema)
        found = merge(self._duck, task.table, VERBS[transaction.verb], old, new)
        if not found.changes:
            return NothingToWrite(found.unchanged, found.skipped)
        counter = IdentityCounter(
            transaction.next_row_index, transaction.next_row_id, transaction.opened_at, transaction.version
        )
        merged = merged_rows(found, old, new, counter, transaction.version)
        self._faults.at("prepare:chunk")
        with self._lock:
            self._versions[task.table.dataset_id, transaction.version] = tuple(merged.rows.to_batches())
        return Prepared(
            counts=Counts(
                rows_in=new.num_rows,
                added=len(found.added),
                updated=len(found.updated),
                unchanged=found.unchanged,
                deleted=len(found.deleted),
                skipped=found.skipped,
                row_count=merged.rows.num_rows,
            ),
            next_row_id=counter.row_id,
            next_row_index=counter.row_index,
            rebases=task.parent is None,
            publishes=False,
            snapshot_id=transaction.version,
            delta=Delta(*(self._digest(task.table, each.to_reader()) for each in merged.difference)),
        )

    def scan(self, table: TableRef, version: ArmVersion, scan: Scan) -> pa.RecordBatchReader:
        """Stream one version's rows out of its batches."""
        wanted = arrow_schema(table.schema.select(scan.columns))
        target = with_identity(wanted) if scan.identity else wanted
        conditions = [f"{VERSION} > {scan.since}"] if scan.since is not None else []
        conditions += with_keys(scan, table.schema)
        rows = pa.Table.from_batches(self._rows(table, version), with_identity(arrow_schema(table.schema)))
        if not conditions:
            return rows.select(target.names).to_reader()
        names = quote_list([*wanted.names, *(IDENTITY_COLUMNS if scan.identity else ())])
        query = f"SELECT {names} FROM {quote_identifier(SOURCE)} WHERE {' AND '.join(conditions)}"
        keys = {} if scan.keys is None else {KEYS: scan.keys}
        return self._duck.stream(query, target, {SOURCE: rows, **keys}, scan.where)

    def digest(self, table: TableRef, version: ArmVersion) -> Digest:
        """Compute the digest from the version's batches."""
        schema = with_identity(arrow_schema(table.schema))
        return self._digest(table, pa.RecordBatchReader.from_batches(schema, iter(self._rows(table, version))))

    def publish(self, table: TableRef, version: ArmVersion) -> None:
        """Do nothing: readers find the version through the ledger."""

    def discard(self, table: TableRef, version: int) -> None:
        """Forget the rows of an aborted version."""
        with self._lock:
            self._versions.pop((table.dataset_id, version), None)

    def locate(self, table: TableRef, version: ArmVersion) -> dict[str, str]:
        """Say that the rows are in memory, under which version."""
        return {"memory": "this process", "dataset_id": str(table.dataset_id), "version": str(version.snapshot_id)}

    def versions(self, table: TableRef) -> Iterator[int]:
        """Yield the versions that are kept, prepared ones included, in no particular order."""
        with self._lock:
            kept = list(self._versions)
        return (version for dataset_id, version in kept if dataset_id == table.dataset_id)

    def _digest(self, table: TableRef, rows: pa.RecordBatchReader) -> Digest:
        # On the instance that is there: a new one costs eighty times what a new connection does.
        with self._duck.connect() as connection:
            return digest_batches(table.schema, rows, connection=connection)

    def _rows(self, table: TableRef, version: ArmVersion) -> Rows:
        assert version.snapshot_id is not None, "prepare records one"
        with self._lock:
            rows = self._versions.get((table.dataset_id, version.snapshot_id))
        if rows is None:
            raise StorageError(
                f"version {version.version} of dataset {table.name} was in the memory of a process that has ended",
                next_step="copy the dataset to the arm again, or write it anew",
                dataset=table.name,
            )
        return rows


def _until_lost(batches: pa.RecordBatchReader, check: Callable[[], None]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        check()
        yield batch
