"""What a snapshot of ours does to the files of the one before: a change, and PyIceberg's producer that makes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.io import FileIO
from pyiceberg.manifest import (
    DataFile,
    DataFileContent,
    ManifestContent,
    ManifestEntry,
    ManifestEntryStatus,
    ManifestFile,
    ManifestWriterV2,
)
from pyiceberg.table import TableProperties, Transaction
from pyiceberg.table.snapshots import (
    Operation,
    Snapshot,
    SnapshotSummaryCollector,
    Summary,
    update_snapshot_summaries,
)
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles, _SnapshotProducer
from pyiceberg.typedef import EMPTY_DICT
from pyiceberg.utils.properties import property_as_int

from lakeward.storage.arms.iceberg.transactions import LeanTransaction


class Change(ABC):
    """What a snapshot does. It can be carried out again, after a commit that failed, on what is there then."""

    @abstractmethod
    def producer(self, transaction: Transaction, properties: dict[str, str], branch: str) -> OurCommit:
        """Return what makes the snapshot, ready to commit.

        Args:
            transaction: where it is staged; the branch is there.
            properties: for the snapshot's summary.
            branch: the branch that it goes on.
        """


@dataclass(frozen=True)
class Appends(Change):
    """The files join those of the parent. Once there are many manifests, they are merged to one."""

    files: Sequence[DataFile]

    def producer(self, transaction: Transaction, properties: dict[str, str], branch: str) -> OurCommit:
        """See `Change`."""
        return _with_files(_Append, Operation.APPEND, self.files, transaction, properties, branch)


@dataclass(frozen=True)
class Replaces(Change):
    """The files take the place of all those of the parent: one snapshot, with no empty state between."""

    files: Sequence[DataFile]

    def producer(self, transaction: Transaction, properties: dict[str, str], branch: str) -> OurCommit:
        """See `Change`."""
        return _with_files(_ReplaceAll, Operation.OVERWRITE, self.files, transaction, properties, branch)


def _with_files(
    kind: type[OurCommit],
    operation: Operation,
    files: Sequence[DataFile],
    transaction: Transaction,
    properties: dict[str, str],
    branch: str,
) -> OurCommit:
    producer = kind(
        operation=operation,
        transaction=transaction,
        io=transaction._table.io,
        snapshot_properties=properties,
        branch=branch,
    )
    for file in files:
        producer.append_data_file(file)
    if files and isinstance(transaction, LeanTransaction):
        # PyIceberg takes new files to be of the spec that the table has now.
        transaction.write_by(files[0].spec_id)
    return producer


def _with_files_of(snapshot: Snapshot, io: FileIO) -> list[ManifestFile]:
    """Return a snapshot's manifests, but those of removed entries only, which say what that snapshot removed."""
    return [each for each in snapshot.manifests(io) if each.has_added_files() or each.has_existing_files()]


class OurCommit(_SnapshotProducer[Any]):
    """A snapshot that PyIceberg's retry doesn't know, and so can't rebuild without its branch."""

    _transaction: Transaction

    def commit(self) -> None:
        """Stage the snapshot in the transaction, which commits it."""
        self._transaction._apply(*self._commit())


class _Append(OurCommit, _MergeAppendFiles):
    pass


class _ReplaceAll(OurCommit, _OverwriteFiles):
    def _existing_manifests(self) -> list[ManifestFile]:
        return []

    def _deleted_entries(self) -> list[ManifestEntry]:
        parent = self._transaction.table_metadata.snapshot_by_id(self._parent_snapshot_id or 0)
        assert parent is not None
        removed: list[ManifestEntry] = []
        for manifest in _with_files_of(parent, self._io):
            for entry in manifest.fetch_manifest_entry(io=self._io, discard_deleted=True):
                self._deleted_data_files.add(entry.data_file)
                # Delete files go with their data files, and are counted: without a manifest that names them they are
                # gone.
                if entry.data_file.content != DataFileContent.DATA:
                    continue
                removed.append(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.DELETED,
                        snapshot_id=self._snapshot_id,
                        sequence_number=entry.sequence_number,
                        file_sequence_number=entry.file_sequence_number,
                        data_file=entry.data_file,
                    )
                )
        return removed


@dataclass(frozen=True)
class RowDelta(Change):
    """Files join those of the parent, and files leave it, all in one snapshot: data files and delete files alike.

    The delete files name rows of the parent's data files, so it can be carried out on that parent only.

    Args:
        parent: the snapshot that it was made for.
        data: data files that are added.
        deletes: position delete files that are added.
        removed: the paths of data files and delete files that are in the snapshot no more.
    """

    parent: int
    data: Sequence[DataFile]
    deletes: Sequence[DataFile] = ()
    removed: frozenset[str] = frozenset()

    def producer(self, transaction: Transaction, properties: dict[str, str], branch: str) -> OurCommit:
        """See `Change`.

        Raises:
            ParentMoved: the branch starts at another snapshot.
        """
        start = transaction.table_metadata.snapshot_by_name(branch)
        if start is None or start.snapshot_id != self.parent:
            raise ParentMoved(self.parent)
        producer = _RowDelta(
            operation=self._operation(),
            transaction=transaction,
            io=transaction._table.io,
            snapshot_properties=properties,
            branch=branch,
        )
        producer.take(self)
        return producer

    def _operation(self) -> Operation:
        # The spec's words, which other engines go by: what only adds data is an append, what adds none is a delete.
        if not self.data:
            return Operation.DELETE
        return Operation.OVERWRITE if self.deletes or self.removed else Operation.APPEND


class ParentMoved(Exception):
    """The snapshot that a change was made for is not where the branch starts any more. It has to be made anew."""


class _DeleteManifestWriter(ManifestWriterV2):
    """PyIceberg has none of its own: it writes no delete files."""

    def content(self) -> ManifestContent:
        return ManifestContent.DELETES

    @property
    def _meta(self) -> dict[str, str]:
        return {**super()._meta, "content": "deletes"}


_Kind = tuple[ManifestContent, int]
"""What may be in one manifest: data files or delete files, of one partition spec."""


class _RowDelta(OurCommit):
    """Makes the snapshot of a `RowDelta`.

    A new manifest of each kind joins those of the parent; once there are so many small ones, they become one with it.
    """

    _change: RowDelta

    def take(self, change: RowDelta) -> None:
        """Say what it is to do."""
        self._change = change
        self._removed_files: list[DataFile] = []
        self._merge_from = self._number(
            TableProperties.MANIFEST_MIN_MERGE_COUNT, TableProperties.MANIFEST_MIN_MERGE_COUNT_DEFAULT
        )
        self._merge_below = self._number(
            TableProperties.MANIFEST_TARGET_SIZE_BYTES, TableProperties.MANIFEST_TARGET_SIZE_BYTES_DEFAULT
        )

    def _number(self, name: str, default: int) -> int:
        found = property_as_int(self._transaction.table_metadata.properties, name, default)
        return default if found is None else found

    def _existing_manifests(self) -> list[ManifestFile]:
        parent = self._transaction.table_metadata.snapshot_by_id(self._change.parent)
        assert parent is not None, "the branch starts there"
        return _with_files_of(parent, self._io)

    def _deleted_entries(self) -> list[ManifestEntry]:
        return []

    def _manifests(self) -> list[ManifestFile]:
        kinds: dict[_Kind, list[ManifestFile]] = defaultdict(list)
        entries: dict[_Kind, list[ManifestEntry]] = defaultdict(list)
        for content, files in (
            (ManifestContent.DATA, self._change.data),
            (ManifestContent.DELETES, self._change.deletes),
        ):
            for file in files:
                entries[content, self._spec_id(file)].append(self._entry(ManifestEntryStatus.ADDED, file))
        self._removed_files = []
        for manifest in self._existing_manifests():
            kind = (manifest.content, manifest.partition_spec_id)
            held = self._without_removed(manifest) if self._change.removed else None
            if held is None:
                kinds[kind].append(manifest)
            else:
                entries[kind] += held
        missing = self._change.removed - {file.file_path for file in self._removed_files}
        assert not missing, f"not in the parent: {missing}"
        result: list[ManifestFile] = []
        for kind in dict.fromkeys([*entries, *kinds]):
            kept, added = kinds[kind], entries[kind]
            small = [each for each in kept if each.manifest_length < self._merge_below]
            if added and len(small) + 1 >= self._merge_from:
                added += [entry for each in small for entry in self._existing(each)]
                kept = [each for each in kept if each.manifest_length >= self._merge_below]
            result += ([self._write(kind, added)] if added else []) + kept
        return result

    def _spec_id(self, file: DataFile) -> int:
        # A file that was just written has none of its own yet: it is written by the table's spec.
        return int(getattr(file, "_spec_id", self._transaction.table_metadata.default_spec_id))

    def _existing(self, manifest: ManifestFile) -> list[ManifestEntry]:
        found = manifest.fetch_manifest_entry(self._io, discard_deleted=True)
        return [self._entry(ManifestEntryStatus.EXISTING, entry.data_file, entry) for entry in found]

    def _without_removed(self, manifest: ManifestFile) -> list[ManifestEntry] | None:
        """Return the manifest's entries, those of removed files marked so; None if none of its files is removed."""
        held = self._existing(manifest)
        removed = [entry for entry in held if entry.data_file.file_path in self._change.removed]
        if not removed:
            return None
        self._removed_files += [entry.data_file for entry in removed]
        return [
            self._entry(ManifestEntryStatus.DELETED, entry.data_file, entry)
            if entry.data_file.file_path in self._change.removed
            else entry
            for entry in held
        ]

    def _entry(self, status: ManifestEntryStatus, file: DataFile, held: ManifestEntry | None = None) -> ManifestEntry:
        """Return an entry. That of an added file has no sequence number: it inherits the snapshot's."""
        before = status is ManifestEntryStatus.EXISTING and held is not None
        return ManifestEntry.from_args(
            status=status,
            snapshot_id=held.snapshot_id if before and held is not None else self._snapshot_id,
            sequence_number=held.sequence_number if held is not None else None,
            file_sequence_number=held.file_sequence_number if held is not None else None,
            data_file=file,
        )

    def _write(self, kind: _Kind, entries: Sequence[ManifestEntry]) -> ManifestFile:
        content, spec_id = kind
        if content is ManifestContent.DATA:
            writer = self.new_manifest_writer(self.spec(spec_id))
        else:
            writer = _DeleteManifestWriter(
                self.spec(spec_id), self.schema(), self.new_manifest_output(), self._snapshot_id, self._compression
            )
        with writer:
            for entry in entries:
                writer.add_entry(entry)
        return writer.to_manifest_file()

    def _summary(self, snapshot_properties: dict[str, str] = EMPTY_DICT) -> Summary:
        metadata = self._transaction.table_metadata
        limit = self._number(
            TableProperties.WRITE_PARTITION_SUMMARY_LIMIT, TableProperties.WRITE_PARTITION_SUMMARY_LIMIT_DEFAULT
        )
        collector = SnapshotSummaryCollector(partition_summary_limit=limit)
        for file in (*self._change.data, *self._change.deletes):
            collector.add_file(file, self.schema(), self.spec(self._spec_id(file)))
        for file in self._removed_files:
            collector.remove_file(file, self.schema(), self.spec(self._spec_id(file)))
        parent = metadata.snapshot_by_id(self._change.parent)
        return update_snapshot_summaries(
            Summary(operation=self._operation, **collector.build(), **snapshot_properties),
            parent.summary if parent is not None else None,
        )
