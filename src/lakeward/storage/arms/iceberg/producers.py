"""What a snapshot of ours does to the files of the one before: a change, and PyIceberg's producer that makes it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Transaction
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.update.snapshot import _MergeAppendFiles, _OverwriteFiles, _SnapshotProducer


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
    return producer


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
        for manifest in parent.manifests(io=self._io):
            for entry in manifest.fetch_manifest_entry(io=self._io, discard_deleted=True):
                # Delete files go with their data files: without a manifest that names them they are gone.
                if entry.data_file.content != DataFileContent.DATA:
                    continue
                self._deleted_data_files.add(entry.data_file)
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
