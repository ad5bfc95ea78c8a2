"""Compaction: data files that have gathered delete files, or are small, are written anew, with the same rows.

Which ones, `compaction_choice` says, by what the manifests say. What is written is read back and compared with what was
there, before any snapshot names it.
"""

from __future__ import annotations

import itertools
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.conversions import from_bytes
from pyiceberg.io.pyarrow import _read_deletes
from pyiceberg.manifest import DataFile, DataFileContent
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.types import LongType

from lakeward.clock import Faults
from lakeward.control.records import Counts, OpenTransaction
from lakeward.errors import CatalogError
from lakeward.storage.arm import NothingToWrite, Prepared, WriteTask
from lakeward.storage.arms.iceberg.adoption import Adoption
from lakeward.storage.arms.iceberg.compaction_choice import Bin, DataFileFacts, bytes_of, choose, live_rows_of
from lakeward.storage.arms.iceberg.deletes import referenced_path
from lakeward.storage.arms.iceberg.files import RollingWriter
from lakeward.storage.arms.iceberg.producers import ParentMoved
from lakeward.storage.arms.iceberg.rewrites import Rewrites
from lakeward.storage.arms.iceberg.scans import FileScan, as_written, live_rows
from lakeward.storage.arms.iceberg.snapshots import Snapshots
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.arms.iceberg.unnumbered import lacks_identity
from lakeward.storage.duck import Duck
from lakeward.storage.extent import Extent
from lakeward.storage.filters import quote_list
from lakeward.storage.identity import with_identity
from lakeward.storage.leftovers import Gathered, Rewriting
from lakeward.storage.settings import CompactionPolicy
from lakeward.storage.table import TableRef
from lakeward.types.digest import row_text_duckdb
from lakeward.types.schema import IDENTITY_COLUMNS, VERSION
from lakeward.types.table import arrow_schema

log = logging.getLogger("lakeward.maintenance")


@dataclass(frozen=True)
class Work:
    """What is to be done to one snapshot.

    Args:
        start: the snapshot.
        bins: files that become one, each with the delete files that apply to it.
        removed: the data files that go.
        dropped: the delete files that go: they apply to no file that stays.
        summary: the same, for people.
    """

    start: int
    bins: tuple[tuple[FileScanTask, ...], ...]
    removed: frozenset[str]
    dropped: frozenset[str]
    summary: Rewriting

    def change(self, files: Sequence[DataFile]) -> Rewrites:
        """Return what the snapshot does, with the files that were written."""
        return Rewrites(self.start, files, removed=self.removed | self.dropped)

    def prepared(self, transaction: OpenTransaction, rows: int, snapshot: int, parent: int) -> Prepared:
        """Return what decide records: no row has changed."""
        return Prepared(
            counts=Counts(rows, 0, 0, rows, 0, 0, transaction.parent_row_count),
            next_row_id=transaction.next_row_id,
            next_row_index=transaction.next_row_index,
            rebases=False,
            publishes=True,
            snapshot_id=snapshot,
            parent_snapshot_id=parent,
        )


@dataclass(frozen=True)
class _Head:
    """The live files of a snapshot, the delete files that apply to each data file, and how many rows those delete."""

    data: dict[str, DataFile]
    deletes: dict[str, list[DataFile]]
    deleted: Counter[str]
    delete_files: dict[str, DataFile]


class Compactor:
    """Looks for work in a table's snapshots, and does it.

    Args:
        duck: reads.
        faults: called as `prepare:files` when the files are written.
    """

    def __init__(self, duck: Duck, faults: Faults) -> None:
        self._duck = duck
        self._faults = faults

    def run(
        self, task: WriteTask, policy: CompactionPolicy, adoption: Adoption, snapshots: Snapshots
    ) -> Prepared | NothingToWrite:
        """Rewrite files of the head into a version, if the arm holds that and there is something to rewrite."""
        if task.parent is None or task.parent.version != task.transaction.parent_version:
            return NothingToWrite()
        task, loaded, parent = adoption.open(task)
        work = self.look(loaded, task.table, parent, policy)
        if work is None:
            return NothingToWrite()
        files, rows = self.rewrite(loaded, task.table, work, task.transaction.version, task.check)
        try:
            snapshot, start = snapshots.commit(task, loaded, parent, work.change(files))
        except ParentMoved:
            return NothingToWrite()  # another engine has just compacted it
        return work.prepared(task.transaction, rows, snapshot, start)

    def look(self, loaded: Table, table: TableRef, snapshot_id: int, policy: CompactionPolicy) -> Work | None:
        """Return what is to be rewritten of a snapshot; None: nothing, or it can't be."""
        with catalog_errors(f"dataset {table.name}"):
            if lacks_identity(as_written(loaded, snapshot_id).schema()):
                return None  # its first write will write all rows anew
            head = _head(loaded, table, snapshot_id)
            if head is None:
                return None
            bins = choose(_facts(loaded, head), policy)
            removed = frozenset(file.path for each in bins for file in each)
            applied = {file.file_path for path, files in head.deletes.items() if path not in removed for file in files}
            # Also those that another engine left behind when it took their data files away.
            dropped = frozenset(head.delete_files.keys() - applied)
            if not bins and not dropped:
                return None
            tasks = tuple(
                tuple(FileScanTask(head.data[file.path], set(head.deletes.get(file.path, ()))) for file in each)
                for each in bins
            )
        summary = Rewriting(
            table.name,
            len(removed),
            sum(map(bytes_of, bins)) + sum(head.delete_files[path].file_size_in_bytes for path in dropped),
            len(dropped),
            sum(live_rows_of(each) > 0 for each in bins),
            actions=(*map(_said, bins), *(f"drop delete file {path}" for path in sorted(dropped))),
        )
        return Work(snapshot_id, tasks, removed, dropped, summary)

    def rewrite(
        self, loaded: Table, table: TableRef, work: Work, version: int, check: Callable[[], None]
    ) -> tuple[list[DataFile], int]:
        """Write the files, compare them with those that they replace, and return them and the number of their rows.

        Raises:
            CatalogError: they don't have the same rows, or can't be written. They are deleted.
        """
        written: list[RollingWriter] = []
        try:
            for number, tasks in enumerate(work.bins):
                # The bin is as large as the file may be; what a file has in memory does not matter to the writer.
                prefix, what = f"{version:08d}-{number:05d}", f"dataset {table.name}"
                writer = RollingWriter(loaded, prefix, sys.maxsize, what, table.schema)
                written.append(writer)
                writer.write_all(self._batches(loaded, table, work.start, tasks), check)
            self._faults.at("prepare:files")
            files = [file for writer in written for file in writer.files]
            self._audit(loaded, table, work, files)
        except BaseException:
            for writer in written:
                writer.delete()
            raise
        return files, sum(writer.rows for writer in written)

    def _batches(
        self, loaded: Table, table: TableRef, snapshot_id: int, tasks: Sequence[FileScanTask]
    ) -> Iterator[pa.RecordBatch]:
        schema = with_identity(arrow_schema(table.schema))
        for scan in _scans(loaded, table, snapshot_id, tasks):
            yield from self._duck.stream(scan.sql, schema, scan.tables)

    def _audit(self, loaded: Table, table: TableRef, work: Work, files: Sequence[DataFile]) -> None:
        """Raise if the files don't have exactly the rows that those before have, identity included."""
        before = self._checksum(loaded, table, work.start, list(itertools.chain.from_iterable(work.bins)))
        after = self._checksum(loaded, table, work.start, [FileScanTask(file) for file in files])
        if before != after:
            raise CatalogError(
                f"dataset {table.name}: the rewritten files hold other rows than those before: {after[0]:,} rows, sum "
                f"{after[1]}, not {before[0]:,}, {before[1]}",
                safe="nothing was changed; the rewritten files are gone",
                next_step="check the warehouse's disk, then `lakeward maintain`; `lakeward verify` checks all rows",
                dataset=table.name,
            )

    def _checksum(
        self, loaded: Table, table: TableRef, snapshot_id: int, tasks: Sequence[FileScanTask]
    ) -> tuple[int, int]:
        """Return the number of rows, and the sum of their hashes: of the digest's text, and the identity.

        DuckDB's own hash: an MD5 of each row would take longer than all the rest.
        """
        count = total = 0
        hashed = f"hash({row_text_duckdb(table.schema)}, {quote_list(IDENTITY_COLUMNS)})"
        with self._duck.session() as connection:
            for scan in _scans(loaded, table, snapshot_id, tasks):
                for name, rows in scan.tables.items():
                    connection.register(name, rows)
                sql = f"SELECT count(*), coalesce(sum({hashed}), 0) FROM ({scan.sql})"
                ((rows, hashes),) = connection.execute(sql).fetchall()
                count, total = count + int(rows), total + int(hashes)
                for name in scan.tables:
                    connection.unregister(name)
        return count, total


def _scans(loaded: Table, table: TableRef, snapshot_id: int, tasks: Sequence[FileScanTask]) -> Iterator[FileScan]:
    """Return queries that yield the files' rows in their order: neighbours without deleted rows are read at once."""
    written = as_written(loaded, snapshot_id)
    columns = (*table.schema.names, *IDENTITY_COLUMNS)
    for clean, found in itertools.groupby(tasks, key=lambda task: not task.delete_files):
        together = list(found)
        for some in [together] if clean else [[task] for task in together]:
            yield live_rows(written, some, table.schema, columns)


def _head(loaded: Table, table: TableRef, snapshot_id: int) -> _Head | None:
    """Read a snapshot's manifests; None if we must not rewrite it."""
    snapshot = loaded.metadata.snapshot_by_id(snapshot_id)
    why = None if loaded.format_version == 2 else f"its format version is {loaded.format_version}"
    ours = {*(column.field_id for column in table.schema.columns), *map(_field_id(loaded), IDENTITY_COLUMNS)}
    if {field.field_id for field in as_written(loaded, snapshot_id).schema().fields} - ours:
        why = "it has columns that the dataset has not"
    head = _Head({}, {}, Counter(), {})
    deletes: list[tuple[DataFile, int]] = []
    sequences: dict[str, int] = {}
    for manifest in snapshot.manifests(loaded.io) if snapshot is not None else ():
        for entry in manifest.fetch_manifest_entry(loaded.io, discard_deleted=True):
            file = entry.data_file
            if file.content == DataFileContent.DATA:
                head.data[file.file_path] = file
                sequences[file.file_path] = entry.sequence_number or 0
            elif file.content == DataFileContent.POSITION_DELETES:
                deletes.append((file, entry.sequence_number or 0))
            else:
                why = "another engine has deleted rows of it by their values"
    if why is not None:
        log.warning("dataset %s: its Iceberg table is not compacted: %s", table.name, why)
        return None
    for file, sequence in deletes:
        head.delete_files[file.file_path] = file
        for path, rows in _named(loaded, file).items():
            if path in head.data and sequence >= sequences[path]:
                head.deletes.setdefault(path, []).append(file)
                head.deleted[path] += rows
    return head


def _named(loaded: Table, file: DataFile) -> dict[str, int]:
    """Return how many rows of which data files a delete file deletes. One whose bounds don't say that is read."""
    path = referenced_path(file)
    if path is not None:
        return {path: file.record_count}
    return {path: len(positions) for path, positions in _read_deletes(loaded.io, file).items()}


def _facts(loaded: Table, head: _Head) -> list[DataFileFacts]:
    version = _field_id(loaded)(VERSION)

    def bound(bounds: dict[int, bytes] | None) -> int:
        found = (bounds or {}).get(version)
        return int(from_bytes(LongType(), found)) if found is not None else 0

    return [
        DataFileFacts(
            path=path,
            rows=file.record_count,
            bytes=file.file_size_in_bytes,
            first=bound(file.lower_bounds),
            last=bound(file.upper_bounds),
            delete_files=len(head.deletes.get(path, ())),
            deleted=head.deleted[path],
            group=(file.spec_id, repr(file.partition)),
        )
        for path, file in head.data.items()
    ]


def _field_id(loaded: Table) -> Callable[[str], int]:
    return lambda name: loaded.schema().find_field(name).field_id


def gathered(metadata: TableMetadata, snapshot_id: int | None) -> Gathered:
    """Return how many files a snapshot has, as its summary says. Other engines may count otherwise, or not at all."""
    counts = _counts(metadata, snapshot_id)
    return Gathered(counts["total-data-files"], counts["total-delete-files"])


def extent(metadata: TableMetadata, snapshot_id: int | None) -> Extent:
    """Return how large a snapshot is, as its summary says; nothing where it does not."""
    counts = _counts(metadata, snapshot_id)
    return Extent(counts.get("total-files-size"), counts.get("total-data-files"), counts.get("total-delete-files"))


def rewritten(loaded: Table, table: TableRef, version: int, snapshot_id: int) -> Rewriting:
    """Return what a compaction did, as the summary of its snapshot says."""
    counts = _counts(loaded.metadata, snapshot_id)
    return Rewriting(
        table.name,
        files=counts["deleted-data-files"],
        bytes=counts["removed-files-size"],
        delete_files=counts["removed-delete-files"],
        files_after=counts["added-data-files"],
        bytes_after=counts["added-files-size"],
        version=version,
    )


def _counts(metadata: TableMetadata, snapshot_id: int | None) -> Counter[str]:
    snapshot = metadata.snapshot_by_id(snapshot_id) if snapshot_id is not None else None
    found = snapshot.summary.additional_properties if snapshot is not None and snapshot.summary is not None else {}
    return Counter({name: int(value) for name, value in found.items() if value.isdecimal()})


def _said(files: Bin) -> str:
    """Say in words what becomes of the files of a bin."""
    deleted = sum(file.deleted for file in files)
    without = f" without {deleted:,} deleted rows" if deleted else ""
    what = f"rewrite {files[0].path}" if len(files) == 1 else f"merge {len(files)} files into one"
    names = "" if len(files) == 1 else ": " + ", ".join(file.path for file in files)
    return f"{what}{without}{names}"
