"""The Iceberg arm: streams in and out of native tables; versions are snapshots that the ledger names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa
from pyiceberg.table.metadata import TableMetadata

from lakeward.control.catalog_abilities import KnownCatalogs
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.ledger import Ledger
from lakeward.control.moves import Relocated, Relocation
from lakeward.control.purges import Purges
from lakeward.control.records import ArmVersion, Claim, Counts
from lakeward.control.retention import Retention
from lakeward.errors import ConflictError
from lakeward.in_place import InPlace
from lakeward.storage.arm import ArmContext, NothingToWrite, Prepared, Scan, StorageArm, WriteTask, replayed
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.abilities import Abilities
from lakeward.storage.arms.iceberg.adoption import Adoption
from lakeward.storage.arms.iceberg.compaction import Compactor, extent, gathered, rewritten
from lakeward.storage.arms.iceberg.foreign import head_of
from lakeward.storage.arms.iceberg.foreign_rows import ForeignRows
from lakeward.storage.arms.iceberg.merge import Merge
from lakeward.storage.arms.iceberg.namespaces import drop_if_empty
from lakeward.storage.arms.iceberg.producers import ParentMoved
from lakeward.storage.arms.iceberg.purging import Purger
from lakeward.storage.arms.iceberg.reading import Reading
from lakeward.storage.arms.iceberg.receiver import IcebergReceiver
from lakeward.storage.arms.iceberg.relocation import Relocator
from lakeward.storage.arms.iceberg.replay import Replay
from lakeward.storage.arms.iceberg.scans import FileScan
from lakeward.storage.arms.iceberg.snapshots import Snapshots
from lakeward.storage.arms.iceberg.tables import Tables
from lakeward.storage.arms.iceberg.taking import TAKING, Taking
from lakeward.storage.arms.iceberg.upkeep import EXPIRE_EVERY, Upkeep, removable
from lakeward.storage.extent import Extent
from lakeward.storage.filters import Filter
from lakeward.storage.foreign_head import ForeignHead, Survey
from lakeward.storage.guard import Guard
from lakeward.storage.identity import IdentityCounter, with_identity
from lakeward.storage.leftovers import Gathered, Leftover, PurgeTask, Rewriting, TidyTask
from lakeward.storage.receiving import Receiver
from lakeward.storage.settings import CompactionPolicy
from lakeward.storage.sides import Difference, Side
from lakeward.storage.staged_batch import StagedBatch
from lakeward.storage.table import TableRef
from lakeward.storage.verbs import KEYED, verb_named
from lakeward.types.digest import EMPTY, Digest, duckdb_digest_sql
from lakeward.types.schema import ROW_INDEX
from lakeward.types.table import arrow_schema

MERGE_TRIES = 3
"""How often the rows of a keyed write are matched anew, because another engine compacted them meanwhile."""


class IcebergArm(StorageArm):
    """Rows in a native Apache Iceberg table."""

    name = "iceberg"
    has_files = True
    mirrors = True
    leftovers_hide = True

    def __init__(self, context: ArmContext) -> None:
        self._tables = Tables(context.database, context.settings)
        self._database = context.database
        self._ledger = context.ledger
        self._reading = Reading(self.name, self._tables, context.ledger)
        self._duck = context.duck
        self._foreign = ForeignRows(context.duck)
        self._adoption = Adoption(self._tables, self._foreign, context.ledger)
        self._faults = context.faults
        self._abilities = Abilities(self._tables, KnownCatalogs(context.database))
        self._relocator = Relocator(self._tables, self._abilities, context.faults)
        self._purger = Purger(self._tables, Purges(context.database), context.faults)
        self._target_file_bytes = context.settings.target_file_bytes
        self._snapshots = Snapshots(self._tables, self._adoption, self._target_file_bytes, context.faults)
        self._taking = Taking(self._tables, self._adoption, self._snapshots, context.duck, self._foreign.count)
        self._retention = Retention(context.database, context.settings.retained_versions)
        self._compactor = Compactor(context.duck, context.faults)
        self._gathered: dict[int, Gathered] = {}

    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        """Write data files, then one snapshot on the version's branch; `main` does not move."""
        if task.transaction.verb in KEYED:
            return self._merge(task, batches)
        if task.policy is not None:
            return self._compactor.run(task, task.policy, self._adoption, self._snapshots)
        if task.transaction.verb in TAKING:
            return self._taking.prepare(task)
        if task.adopts is not None:
            return self._adoption.adopt(task, task.adopts, self._snapshots.write_adopted)
        task, loaded, parent = self._adoption.open(task)
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
        written = self._snapshots.write(task, loaded, parent, rows, replaces=replaces)
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
            identifier=TableIdentifier.of(loaded.name()),
        )

    def _merge(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        """Write by key: what changes goes into new files and delete files, and those into one snapshot on a branch."""
        verb = verb_named(task.transaction.verb)
        with self._duck.session() as connection:
            staged = StagedBatch(connection, task.table, verb)
            staged.load(batches)
            if task.parent is None and (verb.removes or staged.removing == staged.rows):
                return NothingToWrite(skipped=staged.rows)
            for _ in range(MERGE_TRIES):
                task, loaded, parent = self._adoption.open(task)
                merge = Merge(connection, staged, task, verb, loaded, parent, self._target_file_bytes, self._faults)
                merged = merge.run()
                if isinstance(merged, NothingToWrite):
                    return merged
                try:
                    snapshot, start = self._snapshots.commit(task, loaded, parent, merged.change)
                except ParentMoved:
                    # Another engine compacted what was matched: the positions are of files that are there no more.
                    continue
                return Prepared(
                    counts=merged.counts,
                    next_row_id=merged.next_row_id,
                    next_row_index=merged.next_row_index,
                    rebases=task.parent is None,
                    publishes=True,
                    snapshot_id=snapshot,
                    parent_snapshot_id=start,
                    identifier=TableIdentifier.of(loaded.name()),
                    delta=merged.delta,
                )
        raise ConflictError(
            f"dataset {task.table.name}: another engine compacted its Iceberg table {MERGE_TRIES} times while its rows "
            "were matched",
            safe="nothing of it was touched",
            next_step="repeat the write when that is done",
            dataset=task.table.name,
        )

    def replay(self, task: WriteTask, difference: Difference) -> Prepared:
        """Mark the rows that are gone and write those that have come, in one snapshot on the version's branch."""
        task, loaded, parent = self._adoption.open(task)
        with self._duck.session() as connection:
            change = Replay(connection, task, loaded, parent, self._target_file_bytes, self._faults).run(difference)
        try:
            snapshot, start = self._snapshots.commit(task, loaded, parent, change)
        except ParentMoved as error:
            raise ConflictError(
                f"dataset {task.table.name}: another engine compacted its Iceberg table meanwhile",
                safe="nothing of it was touched",
                dataset=task.table.name,
            ) from error
        return replace(
            replayed(task),
            publishes=True,
            snapshot_id=snapshot,
            parent_snapshot_id=start,
            identifier=TableIdentifier.of(loaded.name()),
        )

    def scan(self, table: TableRef, version: ArmVersion, scan: Scan) -> pa.RecordBatchReader:
        """Stream one snapshot's rows, reading only the columns and files that are needed."""
        wanted = arrow_schema(table.schema.select(scan.columns))
        target = with_identity(wanted) if scan.identity else wanted
        files = self._reading.selected(table, version, scan)
        if files is None:
            return pa.RecordBatchReader.from_batches(target, iter(()))
        return self._duck.stream(files.sql, target, files.tables, scan.where, files=True)

    def in_place(self, reads: Sequence[tuple[TableRef, ArmVersion, Scan]]) -> list[InPlace | None]:
        """Name the data files of one snapshot each, if the store lets others open them."""
        return self._reading.in_place(reads)

    def changes(self, table: TableRef, old: ArmVersion, new: ArmVersion) -> tuple[Side, Side]:
        """Leave out files that both snapshots have, with the same rows deleted."""
        return self._reading.changes(table, old, new)

    def digest(self, table: TableRef, version: ArmVersion) -> Digest:
        """Compute the digest in DuckDB from the data files."""
        files = self._reading.selected(table, version, Scan(table.schema.names))
        return EMPTY if files is None else Digest.of_row(self._hashed(table, files)[0])

    def part_digests(
        self, table: TableRef, version: ArmVersion, width: int, where: Filter | None = None
    ) -> dict[int, Digest]:
        """Compute them in DuckDB; files and row groups that have no such position are not read."""
        scan = Scan(table.schema.names, identity=True, where=where)
        files = self._reading.selected(table, version, scan)
        found = [] if files is None else self._hashed(table, files, f"{ROW_INDEX} // {width:d}")
        return {part: Digest.of_row(sums) for part, *sums in found}

    def _hashed(self, table: TableRef, files: FileScan, part: str | None = None) -> list[tuple[int, ...]]:
        with self._duck.session() as connection:
            for name, rows in files.tables.items():
                connection.register(name, rows)
            return connection.execute(duckdb_digest_sql(table.schema, files.sql, part)).fetchall()

    def publish(self, table: TableRef, version: ArmVersion) -> None:
        """Move `main` to the version's snapshot, if it is still where the ledger remembers it."""
        assert version.snapshot_id is not None
        held = self._retention.expire(table.dataset_id) if version.version % EXPIRE_EVERY == 0 else []

        def removable_now(metadata: TableMetadata) -> list[int]:
            self._gathered[table.dataset_id] = gathered(metadata, version.snapshot_id)
            return removable(metadata, table, version.version, held) if held else []

        moved = branches.publish(
            lambda: self._tables.load(table),
            table,
            version.version,
            version.snapshot_id,
            version.parent_snapshot_id,
            self._adoption.accept(table, version.version, version.snapshot_id),
            removable_now,
        )
        if moved:
            self._ledger.log_sync(
                table.dataset_id,
                version.version,
                "published",
                table.identifier,
                version.snapshot_id,
            )

    def discard(self, table: TableRef, version: int) -> None:
        """Remove the branch of an aborted version. Its files stay: maintenance finds that no snapshot names them."""
        branches.drop(lambda: self._tables.find(table), table, version)

    def discard_after(self, table: TableRef, newest: int, claim: Claim) -> None:
        """Remove the branches of later versions."""
        branches.drop_after(lambda: self._tables.find(table), table, newest, lambda: self._holds(claim))

    def _holds(self, claim: Claim) -> bool:
        with self._database.driver() as connection, connection.transaction():
            return Ledger.holds(connection, claim)

    def tidy(self, task: TidyTask) -> Iterator[Leftover]:
        """Expire snapshots, then remove files that nothing names."""
        return Upkeep(self._tables, self._retention, self._faults).tidy(task)

    def drain(self, task: TidyTask) -> Iterator[Leftover]:
        """Empty `main`. Files stay for the grace of `maintain`, which then removes them and the table, if unused."""
        return Upkeep(self._tables, self._retention, self._faults).drain(task)

    def purge(self, task: PurgeTask) -> Iterator[Leftover]:
        """Take the table out of the catalog, then remove each file that it named."""
        return self._purger.purge(task)

    def end_namespace(self, slugs: tuple[str, ...]) -> str | None:
        """Drop the namespace of that name, if nothing is in it."""
        return drop_if_empty(self._tables.catalog, slugs)

    def gathered(self, dataset_id: int) -> Gathered | None:
        """Return the numbers of files that the newest snapshot says it has."""
        return self._gathered.get(dataset_id)

    def compactable(self, table: TableRef, version: ArmVersion, policy: CompactionPolicy) -> Rewriting | None:
        """Look at the manifests of a version's snapshot."""
        assert version.snapshot_id is not None
        work = self._compactor.look(self._tables.load(table), table, version.snapshot_id, policy)
        return work.summary if work is not None else None

    def compacted(self, table: TableRef, version: ArmVersion) -> Rewriting:
        """Read what the snapshot's summary counts."""
        assert version.snapshot_id is not None
        return rewritten(self._tables.load(table), table, version.version, version.snapshot_id)

    def extent(self, table: TableRef, version: ArmVersion) -> Extent:
        """Return what the snapshot's summary says."""
        return extent(self._tables.load(table).metadata, version.snapshot_id)

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

    def relocate(self, table: TableRef, relocation: Relocation, guard: Guard) -> Relocated:
        """Rename the table in the catalog, or give it a second name and take the first one away."""
        return self._relocator.relocate(table, relocation, guard)

    def obstacle(self, table: TableRef, relocation: Relocation) -> str | None:
        """Look what has the two names in the catalog."""
        return self._relocator.obstacle(table, relocation)

    def receiver(self) -> Receiver:
        """Look ahead with what writes here."""
        return IcebergReceiver(self._tables, self._abilities, self._duck)

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
