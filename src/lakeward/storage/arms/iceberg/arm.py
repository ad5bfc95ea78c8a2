"""The Iceberg arm: streams in and out of native tables; versions are snapshots that the ledger names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import pyarrow as pa
from pyiceberg.table import Table

from lakeward.control.divergence import Compaction
from lakeward.control.records import ArmVersion, Counts
from lakeward.control.retention import Retention
from lakeward.errors import CatalogError, ConflictError, Diverged, StorageError, UnknownVersion, UsageError
from lakeward.storage.arm import (
    ArmContext,
    ForeignHead,
    NothingToWrite,
    Prepared,
    Scan,
    Side,
    StorageArm,
    Survey,
    WriteTask,
)
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.delta import differing
from lakeward.storage.arms.iceberg.files import RollingWriter
from lakeward.storage.arms.iceberg.foreign import diverged, head_of, refused_columns, refused_rows
from lakeward.storage.arms.iceberg.foreign_rows import ForeignRows, Numbering
from lakeward.storage.arms.iceberg.producers import Appends, Replaces
from lakeward.storage.arms.iceberg.scans import FileScan, plan
from lakeward.storage.arms.iceberg.tables import (
    BUILD_PROPERTY,
    DATASET_PROPERTY,
    VERSION_PROPERTY,
    Tables,
)
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.arms.iceberg.upkeep import EXPIRE_EVERY, Upkeep, removable
from lakeward.storage.duck import SOURCE
from lakeward.storage.filters import quote_identifier, quote_list
from lakeward.storage.identity import IdentityCounter, with_identity
from lakeward.storage.leftovers import Leftover, TidyTask
from lakeward.storage.table import TableRef
from lakeward.storage.verbs import KEYED
from lakeward.types.digest import EMPTY, Digest, duckdb_digest_sql
from lakeward.types.schema import IDENTITY_COLUMNS, VERSION
from lakeward.types.table import arrow_schema


@dataclass(frozen=True)
class _Written:
    """A prepared snapshot, the one that it goes on from, and its number of new rows."""

    snapshot: int
    parent: int
    rows: int


class IcebergArm(StorageArm):
    """Rows in a native Apache Iceberg table."""

    name = "iceberg"

    def __init__(self, context: ArmContext) -> None:
        self._tables = Tables(context.database, context.settings)
        self._ledger = context.ledger
        self._duck = context.duck
        self._foreign = ForeignRows(context.duck)
        self._faults = context.faults
        self._target_file_bytes = context.settings.target_file_bytes
        self._retention = Retention(context.database, context.settings.retained_versions)

    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        """Write data files, then one snapshot on the version's branch; `main` does not move."""
        if task.transaction.verb in KEYED:
            raise UsageError(f"the {self.name} arm does not take {task.transaction.verb} writes")
        if task.adopts is not None:
            return self._adopt(task, task.adopts)
        task, loaded, parent = self._open_for_write(task)
        transaction = task.transaction
        copied = transaction.verb == "copy"
        replaces = copied or transaction.verb == "replace"
        counter = IdentityCounter(
            0 if replaces else transaction.next_row_index,
            transaction.next_row_id,
            transaction.opened_at,
            transaction.version,
        )
        rows = batches if copied else (counter.number(batch) for batch in batches)
        written = self._write(task, loaded, parent, rows, replaces=replaces)
        kept = 0 if replaces else transaction.parent_row_count
        added, unchanged = (0, written.rows) if copied else (written.rows, 0)
        return Prepared(
            counts=Counts(
                rows_in=written.rows,
                added=added,
                updated=0,
                unchanged=unchanged,
                deleted=transaction.parent_row_count if transaction.verb == "replace" else 0,
                skipped=0,
                row_count=kept + written.rows,
            ),
            next_row_id=transaction.next_row_id if copied else counter.row_id,
            next_row_index=transaction.next_row_index if copied else counter.row_index,
            rebases=replaces or task.parent is None,
            publishes=True,
            snapshot_id=written.snapshot,
            parent_snapshot_id=written.parent,
            iceberg_namespace=tuple(loaded.name()[:-1]),
        )

    def _write(
        self,
        task: WriteTask,
        loaded: Table,
        parent: int,
        rows: Iterable[pa.RecordBatch],
        *,
        replaces: bool,
        written_with: int | None = None,
    ) -> _Written:
        """Write rows that have their identity columns to data files, and those into a snapshot on a branch."""
        transaction, table = task.transaction, task.table
        what = f"dataset {table.name}"
        writer = RollingWriter(loaded, f"{transaction.version:08d}", self._target_file_bytes, what)
        writer.write_all(rows, task.check)
        self._faults.at("prepare:files")
        namespace = tuple(loaded.name()[:-1])
        snapshot, start = branches.prepare(
            lambda: self._tables.load_at(table, namespace),
            table,
            transaction.version,
            parent,
            Replaces(writer.files) if replaces else Appends(writer.files),
            properties={
                DATASET_PROPERTY: str(table.uid),
                VERSION_PROPERTY: str(transaction.version),
                BUILD_PROPERTY: str(transaction.build_id),
            },
            accept=self._accept(table, transaction.version, written_with),
        )
        self._faults.at("prepare:committed")
        return _Written(snapshot, start, writer.rows)

    def scan(self, table: TableRef, version: ArmVersion, scan: Scan) -> pa.RecordBatchReader:
        """Stream one snapshot's rows, reading only the columns and files that are needed."""
        wanted = table.schema.select(scan.columns)
        target = with_identity(arrow_schema(wanted)) if scan.identity else arrow_schema(wanted)
        names = [*wanted.names, *(IDENTITY_COLUMNS if scan.identity else ())]
        reads = {*names, *(scan.where.columns if scan.where else ()), *((VERSION,) if scan.since is not None else ())}
        files = self._plan(table, version, reads, scan)
        if files is None:
            return pa.RecordBatchReader.from_batches(target, iter(()))
        conditions = [f"{VERSION} > {scan.since}"] if scan.since is not None else []
        conditions += [f"({scan.where.sql})"] if scan.where is not None else []
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        return self._duck.stream(
            f"SELECT {quote_list(names)} FROM ({files.sql}) AS {quote_identifier(SOURCE)}{where}",
            target,
            files.tables,
            scan.where,
        )

    def changes(self, table: TableRef, old: ArmVersion, new: ArmVersion) -> tuple[Side, Side]:
        """Leave out files that both snapshots have, with the same rows deleted."""
        loaded = self._tables.load(table)
        for version in (old, new):
            if loaded.metadata.snapshot_by_id(version.snapshot_id or 0) is None:
                raise self._gone(table, version)
        with catalog_errors(f"dataset {table.name}"):
            return differing(loaded, table.schema, old.snapshot_id or 0, new.snapshot_id or 0)

    def digest(self, table: TableRef, version: ArmVersion) -> Digest:
        """Compute the digest in DuckDB from the data files."""
        files = self._plan(table, version, set(table.schema.names), Scan(table.schema.names))
        if files is None:
            return EMPTY
        with self._duck.session() as connection:
            for name, rows in files.tables.items():
                connection.register(name, rows)
            row = connection.execute(duckdb_digest_sql(table.schema, files.sql)).fetchone()
        assert row is not None
        return Digest.of_row(row)

    def publish(self, table: TableRef, version: ArmVersion) -> None:
        """Move `main` to the version's snapshot, if it is still where the ledger remembers it."""
        assert version.snapshot_id is not None
        held = self._retention.expire(table.dataset_id) if version.version % EXPIRE_EVERY == 0 else []
        moved = branches.publish(
            lambda: self._tables.load(table),
            table,
            version.version,
            version.snapshot_id,
            version.parent_snapshot_id,
            self._accept(table, version.version, version.snapshot_id),
            lambda metadata: removable(metadata, table, version.version, held) if held else [],
        )
        if moved:
            self._ledger.log_sync(
                table.dataset_id,
                version.version,
                "published",
                table.iceberg_namespace or (),
                version.snapshot_id,
            )

    def discard(self, table: TableRef, version: int) -> None:
        """Remove the branch of an aborted version. Its files stay: maintenance finds that no snapshot names them."""
        branches.drop(lambda: self._tables.find(table), table, version)

    def tidy(self, task: TidyTask) -> Iterator[Leftover]:
        """Expire snapshots, then remove files that nothing names."""
        return Upkeep(self._tables, self._retention, self._faults).tidy(task)

    def locate(self, table: TableRef, version: ArmVersion) -> dict[str, str]:
        """Say where the table is in the catalog and on disk, and which snapshot holds the version."""
        loaded = self._tables.load(table)
        return {
            "catalog": loaded.catalog.name,
            "table": ".".join(loaded.name()),
            "location": loaded.location(),
            "metadata": loaded.metadata_location,
            "snapshot": str(version.snapshot_id),
        }

    def _open_for_write(self, task: WriteTask) -> tuple[WriteTask, Table, int]:
        """Return the task as it is to be done, the table, and the snapshot that the new one goes on from."""
        table = task.table
        if task.parent is None:
            loaded = self._tables.give_birth(table)
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
        digest = self._foreign.compaction(loaded, table, parent, head)
        if digest is None or head.snapshot is None:
            raise diverged(table, loaded, parent, head)
        transaction = task.compacted(Compaction(head.snapshot, task.parent, (digest.high, digest.low)))
        self._log_compaction(table, task.transaction.version, head.snapshot)
        return replace(task, transaction=transaction), loaded, head.snapshot

    def _accept(self, table: TableRef, version: int, written_with: int | None = None) -> branches.Accept:
        """Return what lets a commit go on from a compaction of the snapshot that it should go on from."""
        known: set[tuple[int | None, int | None]] = set()

        def accept(loaded: Table, parent: int | None) -> int | None:
            head = head_of(loaded, parent, written_with)
            if head is None:
                return parent
            if (parent, head.snapshot) not in known:
                if parent is None or self._foreign.compaction(loaded, table, parent, head) is None:
                    raise diverged(table, loaded, parent, head)
                known.add((parent, head.snapshot))
                self._log_compaction(table, version, head.snapshot)
            return head.snapshot

        return accept

    def _log_compaction(self, table: TableRef, version: int, snapshot: int | None) -> None:
        self._ledger.log_sync(table.dataset_id, version, "compacted", table.iceberg_namespace or (), snapshot)

    # Another engine's commits ----------------------------------------------------------------------------------------

    def foreign(self, table: TableRef, held: ArmVersion) -> ForeignHead | None:
        """Compare `main` and the columns with what the ledger recorded."""
        return head_of(self._tables.load(table), held.snapshot_id)

    def survey(self, table: TableRef, held: ArmVersion, snapshot: int, version: int) -> Survey:
        """Compare the rows of a foreign snapshot with those of our version, in DuckDB."""
        assert held.snapshot_id is not None
        return self._foreign.survey(self._tables.load(table), table, held.snapshot_id, snapshot, version, (0, 0))

    def restore_columns(self, table: TableRef, held: ArmVersion) -> None:
        """Make the columns and the partition spec of our version the table's again, in one commit."""
        assert held.snapshot_id is not None
        branches.restore_columns(lambda: self._tables.load(table), table, held.snapshot_id)

    def _adopt(self, task: WriteTask, found: int) -> Prepared:
        """Take a foreign snapshot as the version, or its rows with a sound identity on the version's branch."""
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
        survey = self._foreign.survey(loaded, table, ours, found, transaction.version, next_ids)
        digest = self._foreign.digest(loaded, table, found)
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
            return adopted
        task.check()
        numbering = Numbering(survey.next_row_id, survey.next_row_index, transaction.opened_at, transaction.version)
        rows = self._foreign.renumbered(loaded, table, ours, found, numbering)
        written = self._write(task, loaded, found, rows, replaces=True, written_with=ours)
        return replace(
            adopted,
            next_row_id=numbering.row_id,
            next_row_index=numbering.row_index,
            publishes=True,
            snapshot_id=written.snapshot,
            parent_snapshot_id=written.parent,
        )

    def _plan(self, table: TableRef, version: ArmVersion, columns: set[str], scan: Scan) -> FileScan | None:
        assert version.snapshot_id is not None
        loaded = self._tables.load(table)
        if loaded.metadata.snapshot_by_id(version.snapshot_id) is None:
            raise self._gone(table, version)
        with catalog_errors(f"dataset {table.name}"):
            return plan(loaded, version.snapshot_id, table.schema, columns, scan)

    def _gone(self, table: TableRef, version: ArmVersion) -> StorageError | UnknownVersion:
        """Return the error of a reader that was sent to a snapshot which is not in the table."""
        if self._ledger.arm_version(table.dataset_id, self.name, version.version) is None:
            return UnknownVersion(
                f"version {version.version} of dataset {table.name} expired in this moment",
                next_step="read a newer version, or keep more of them: retention.versions",
                dataset=table.name,
                version=version.version,
            )
        return CatalogError(
            f"dataset {table.name}: the snapshot {version.snapshot_id} of version {version.version} is not in its "
            "Iceberg table",
            safe="the ledger still has every committed version",
            next_step="restore the catalog's entry, or read from the other arm if it is current",
            dataset=table.name,
            version=version.version,
        )
