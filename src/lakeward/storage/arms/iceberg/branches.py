"""Prepare on a branch, publish by moving `main`: each is one catalog commit, and neither ever loses another's work.

A version is prepared as ONE snapshot on the branch `lw-<version>`, which starts at the snapshot of the version before.
`main` is not touched until the ledger has decided. Whatever an answer says, the table itself is asked what became of a
commit (`trouble.settle`), which works because none can land twice: preparing asserts that the branch does not exist,
publishing that `main` is at the parent. Three traps of PyIceberg 0.12 that this module is shaped by:

* A write to a branch that does not exist makes one without a parent: the new rows alone. So the branch is created in
  the same commit, before the write.
* Its retry after a lost race rebuilds the snapshot but not the branch's creation, which is that trap again. So our
  snapshots are never handed to its retry, which also deletes their manifests when it gives up; we retry ourselves, from
  fresh metadata, and delete nothing.
* It asserts `main` against whatever was loaded last, which after a refresh is somebody else's commit. So we compare
  with the parent that the ledger recorded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from pyiceberg.manifest import DataFile, DataFileContent, ManifestEntry, ManifestEntryStatus, ManifestFile
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Operation, ancestors_of
from pyiceberg.table.update.snapshot import (
    ExpireSnapshots,
    ManageSnapshots,
    _MergeAppendFiles,
    _OverwriteFiles,
    _SnapshotProducer,
)

from lakeward.errors import Diverged
from lakeward.storage.arms.iceberg.trouble import settle
from lakeward.storage.table import TableRef

_BRANCH = re.compile(r"lw-(\d+)")


def branch_name(version: int) -> str:
    """Return the name of the branch that a version is prepared on."""
    return f"lw-{version}"


def prepare(
    load: Callable[[], Table],
    table: TableRef,
    version: int,
    parent: int,
    files: Sequence[DataFile],
    *,
    replaces: bool,
    properties: dict[str, str],
) -> int:
    """Commit one snapshot on the branch of `version`, and return its id.

    Args:
        load: loads the table anew.
        table: the dataset.
        version: the version that is prepared.
        parent: the snapshot of the last committed version, which `main` must be at.
        files: the new data files.
        replaces: whether they take the place of all others, or join them.
        properties: for the snapshot's summary.

    Raises:
        Diverged: another engine wrote to the table: `main` is not at `parent`, or the branch is of another build.
        CatalogError: the catalog failed; the branch may be there, or come to be there later.
    """
    branch = branch_name(version)

    def attempt() -> int:
        loaded = load()
        prepared = loaded.metadata.refs.get(branch)
        if prepared is not None:
            check_ours(loaded, table, branch, properties)
            return prepared.snapshot_id
        check_main(loaded, table, parent)
        transaction = loaded.transaction()
        updates, requirements = transaction._set_ref_snapshot(parent, branch, "branch")
        transaction._stage(updates, requirements)
        producer = (_ReplaceAll if replaces else _Append)(
            operation=Operation.OVERWRITE if replaces else Operation.APPEND,
            transaction=transaction,
            io=loaded.io,
            snapshot_properties=properties,
            branch=branch,
        )
        for file in files:
            producer.append_data_file(file)
        producer.commit()
        transaction.commit_transaction()
        return producer.snapshot_id

    return settle(f"dataset {table.name}", attempt)


def publish(
    load: Callable[[], Table],
    table: TableRef,
    version: int,
    snapshot: int,
    parent: int,
    removable: Callable[[TableMetadata], list[int]],
) -> bool:
    """Move `main` to the snapshot and remove the branch, in one commit; False if that is done already.

    Branches of earlier versions go with it. While `main` is at the last committed version's snapshot, only aborted ones
    can have any: those whose commit arrived after recovery had looked.

    Args:
        load: loads the table anew.
        table: the dataset.
        version: the version that is published.
        snapshot: its snapshot.
        parent: the snapshot that `main` must be at.
        removable: says which snapshots nothing needs any more; they go with the same commit.

    Raises:
        Diverged: `main` is neither at `parent` nor past `snapshot`.
        CatalogError: the catalog failed; repeating it is safe.
    """
    asked = False

    def attempt() -> bool:
        nonlocal asked
        loaded = load()
        if is_published(loaded, snapshot):
            return asked
        check_main(loaded, table, parent)
        asked = True
        transaction = loaded.transaction()
        manage = ManageSnapshots(transaction).create_branch(snapshot_id=snapshot, branch_name=MAIN_BRANCH)
        for branch in _branches_up_to(loaded, version):
            manage.remove_branch(branch)
        manage.commit()
        if doomed := removable(loaded.metadata):
            ExpireSnapshots(transaction).by_ids(doomed).commit()
        transaction.commit_transaction()
        return True

    return settle(f"dataset {table.name}", attempt)


def drop(load: Callable[[], Table | None], table: TableRef, version: int) -> bool:
    """Remove the branch of an aborted version; False if there is none."""
    branch = branch_name(version)
    asked = False

    def attempt() -> bool:
        nonlocal asked
        loaded = load()
        if loaded is None or branch not in loaded.metadata.refs:
            return asked
        asked = True
        with loaded.manage_snapshots() as manage:
            manage.remove_branch(branch)
        return True

    return settle(f"dataset {table.name}", attempt)


def commit_root(table: Table, properties: dict[str, str]) -> None:
    """Commit an empty first snapshot to `main` of a table that has none."""
    transaction = table.transaction()
    _Append(
        operation=Operation.APPEND,
        transaction=transaction,
        io=table.io,
        snapshot_properties=properties,
        branch=MAIN_BRANCH,
    ).commit()
    transaction.commit_transaction()


def check_ours(loaded: Table, table: TableRef, branch: str, properties: dict[str, str]) -> None:
    """Raise Diverged unless the branch's snapshot carries our build's properties.

    A branch of this version by another build is there if the ledger was set back to a backup, say.
    """
    head = loaded.metadata.snapshot_by_name(branch)
    summary = head.summary if head is not None else None
    if summary is not None and all(summary.get(name) == value for name, value in properties.items()):
        return
    raise Diverged(
        f"dataset {table.name}: the branch {branch} of its Iceberg table holds a snapshot of another build",
        safe="the last committed version was not touched",
        next_step="see that no two ledgers write to one catalog; then repeat the write",
        dataset=table.name,
        branch=branch,
    )


def _branches_up_to(loaded: Table, version: int) -> list[str]:
    found = {name: _BRANCH.fullmatch(name) for name in loaded.metadata.refs}
    return [name for name, match in found.items() if match is not None and int(match[1]) <= version]


def is_published(table: Table, snapshot: int) -> bool:
    """Say whether `main` is at the snapshot, or went on from it."""
    return any(each.snapshot_id == snapshot for each in ancestors_of(table.current_snapshot(), table.metadata))


def check_main(loaded: Table, table: TableRef, parent: int) -> None:
    """Raise Diverged unless `main` is at `parent`, the snapshot of the last version that the ledger committed."""
    head = loaded.current_snapshot()
    if head is not None and head.snapshot_id == parent:
        return
    found = head.snapshot_id if head is not None else None
    raise Diverged(
        f"dataset {table.name} has diverged: main of its Iceberg table is at snapshot {found}, the ledger's last "
        f"committed version is snapshot {parent}",
        safe="the foreign snapshot was not touched, and reads stay at the last committed version",
        next_step=f"to drop the foreign change: set main of {'.'.join(loaded.name())} back to snapshot {parent}",
        dataset=table.name,
        found=found,
        expected=parent,
    )


class _OurCommit(_SnapshotProducer[Any]):
    """A snapshot that PyIceberg's retry doesn't know, and so can't rebuild without its branch."""

    _transaction: Transaction

    def commit(self) -> None:
        self._transaction._apply(*self._commit())


class _Append(_OurCommit, _MergeAppendFiles):
    """The files join those of the parent. Once there are many manifests, they are merged to one."""


class _ReplaceAll(_OurCommit, _OverwriteFiles):
    """The files take the place of all those of the parent: one snapshot, with no empty state between."""

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
