"""Keeps Iceberg tables small: expires snapshots that no version needs, then removes the files that nothing names.

Snapshots are removed only if they are ours and the ledger has ended their version first. Files are removed one by one,
never by prefix, and only where the location is the table's own: it ends with the dataset's uid. What is needed is read
from the table after the files were listed, so that what was committed meanwhile is known; what is younger than the
grace, or than the dataset's open transaction, is never looked at: a commit that names it may still be under way.

PyIceberg doesn't know the property `gc.enabled`; other engines do, and leave our files alone for it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile, read_manifest_list
from pyiceberg.table import Table
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.refs import MAIN_BRANCH
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.update import AssertRefSnapshotId

from lakeward.clock import Faults
from lakeward.control.retention import HeldVersion, Retention
from lakeward.errors import Diverged
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.stores import Store, StoredFile, store_of
from lakeward.storage.arms.iceberg.tables import DATASET_PROPERTY, VERSION_PROPERTY, Tables
from lakeward.storage.arms.iceberg.trouble import catalog_errors, settle
from lakeward.storage.leftovers import Leftover, TidyTask
from lakeward.storage.table import TableRef

EXPIRE_EVERY = 16
"""With every so many versions, the commit that publishes one also removes the snapshots of expired ones."""

MARGIN_SECONDS = 60.0
"""How much older than an open transaction a file must be: the clocks of files and database run at their own speed."""

_ARM = "iceberg"
_KINDS = (
    (re.compile(r"\.metadata\.json(\.gz)?$|\.gz\.metadata\.json$"), "metadata file"),
    (re.compile(r"\.avro$"), "manifest"),
    (re.compile(r"\.(parquet|orc|puffin|stats)$"), "data file"),
)
_MANIFEST_LIST = re.compile(r"snap-(-?\d+)-\d+-[0-9a-f-]+\.avro")

log = logging.getLogger("lakeward.maintenance")


def removable(metadata: TableMetadata, table: TableRef, up_to: int, held: Sequence[HeldVersion]) -> list[int]:
    """Return the snapshots that nothing needs: of expired versions and of aborted ones, and the first, empty one.

    Args:
        metadata: the table's.
        table: the dataset.
        up_to: versions up to this one are committed or aborted for good.
        held: what the ledger says of the dataset's versions.
    """
    held = [each for each in held if each.arm == _ARM]
    readable = {each.snapshot_id for each in held if each.expired_seconds is None}
    ended = {each.snapshot_id for each in held} - readable
    # Whoever made a branch or a tag wants to read it.
    kept = readable | {ref.snapshot_id for ref in metadata.refs.values()}
    return [
        snapshot.snapshot_id
        for snapshot in metadata.snapshots
        if snapshot.snapshot_id not in kept and (snapshot.snapshot_id in ended or is_ours(snapshot, table, up_to))
    ]


def is_ours(snapshot: Snapshot, table: TableRef, up_to: int) -> bool:
    """Say whether a snapshot says that it is of one of the dataset's versions up to this one."""
    summary = snapshot.summary
    if summary is None or summary.get(DATASET_PROPERTY) != str(table.uid):
        return False
    version = summary.get(VERSION_PROPERTY) or ""
    return version.isdecimal() and int(version) <= up_to


@dataclass(frozen=True)
class _Root:
    """The location that is one table's alone, and the store that it is in."""

    location: str
    store: Store


@dataclass(frozen=True)
class _File:
    stored: StoredFile
    kind: str


class Upkeep:
    """Tidies the Iceberg tables of a workspace.

    Args:
        tables: where they are.
        retention: what the ledger holds.
        faults: called as `maintain:snapshots`, `maintain:table` and `maintain:file` before each of them goes.
    """

    def __init__(self, tables: Tables, retention: Retention, faults: Faults) -> None:
        self._tables = tables
        self._retention = retention
        self._faults = faults

    def tidy(self, task: TidyTask) -> Iterator[Leftover]:
        """Remove what is not needed, and yield each thing when it is gone; in a dry run, each that would go."""
        table, held = task.table, task.of_arm(_ARM)
        if task.diverged:
            log.warning("dataset %s has diverged: nothing of its Iceberg table is removed", table.name)
            return
        if not held:
            yield from self._unborn(task)
            return
        loaded = self._tables.load(table) if task.commits else self._tables.find(table)
        if loaded is None:
            return  # It was dropped, and somebody took it out of the catalog: `purge` tells of that.
        if not _holds_all(loaded, table, held):
            return
        doomed = removable(loaded.metadata, table, task.head_version, held) if task.commits else []
        if task.commits and not task.dry_run:
            doomed = self._expire(task)
        yield from (Leftover(table.name, "snapshot", str(snapshot)) for snapshot in doomed)
        recent = {each.snapshot_id for each in held if each.needed(task.grace_seconds)}
        root = self._own_root(loaded.location(), store_of(loaded), table)
        yield from self._files(task, root, recent, frozenset(doomed) if task.dry_run else frozenset())

    def drain(self, task: TidyTask) -> Iterator[Leftover]:
        """Empty `main`, so that the table is as one that was never written to: a later backfill goes on from there.

        A copy that was never published is on a branch, which goes. No file is removed: somebody may be reading the last
        version. `tidy` does that when its grace is over.

        Raises:
            Diverged: another engine has written to the table; its rows stay.
        """
        table = task.table
        published = {each.snapshot_id for each in task.of_arm(_ARM)}

        def check(loaded: Table) -> bool:
            head = loaded.current_snapshot()
            if head is None or (head.summary is not None and head.summary.get(VERSION_PROPERTY) == "0"):
                return False
            if head.snapshot_id not in published and not is_ours(head, table, task.head_version):
                raise Diverged(
                    f"the Iceberg table {'.'.join(loaded.name())} of dataset {table.name} holds rows of another engine",
                    safe="they were not touched",
                    next_step="take them elsewhere and rename that table in the catalog, then repeat",
                    dataset=table.name,
                )
            self._faults.at("maintain:emptied")
            return True

        branches.drop_at(lambda: self._tables.find(table), table, published)
        root = {DATASET_PROPERTY: str(table.uid), VERSION_PROPERTY: "0"}
        emptied = branches.commit_empty(lambda: self._tables.find(table), table, root, check)
        if emptied is not None:
            yield Leftover(table.name, "table", emptied)

    def _expire(self, task: TidyTask) -> list[int]:
        """Remove the snapshots of expired versions from the table, in one commit."""
        gone: list[int] = []

        def attempt() -> list[int]:
            loaded = self._tables.load(task.table)
            # As it is after that: an old version may have been brought here since we looked, and another one after it.
            held = self._retention.held(task.table.dataset_id, _ARM)
            doomed = removable(loaded.metadata, task.table, task.head_version, held)
            if doomed:
                gone[:] = doomed
                self._faults.at("maintain:snapshots")
                expiry = loaded.maintenance.expire_snapshots().by_ids(doomed)
                # A snapshot that goes takes the references to it along. Let nobody have moved `main` there meanwhile.
                main = loaded.metadata.refs.get(MAIN_BRANCH)
                expected = {"ref": MAIN_BRANCH, "snapshot-id": main.snapshot_id if main else None}
                expiry._requirements += (AssertRefSnapshotId.model_validate(expected),)
                expiry.commit()
            return gone

        return settle(f"dataset {task.table.name}", attempt)

    def _unborn(self, task: TidyTask) -> Iterator[Leftover]:
        """Remove the empty table of a first write that was aborted, and the files of such a one."""
        table = task.table
        found = self._tables.find(table)
        if found is None:
            location = self._tables.location(table)
            root = self._own_root(location, self._tables.store(location, f"dataset {table.name}"), table)
        else:
            root = self._own_root(found.location(), store_of(found), table)
            if not (self._is_old(task, found, root) and _is_empty(found, table)):
                return
            if not task.dry_run:
                # Nobody can begin to write the dataset while it is dropped.
                with self._retention.unheld(table.dataset_id, _ARM) as unheld:
                    if not unheld:
                        return
                    self._faults.at("maintain:table")
                    self._tables.drop(found)
            yield Leftover(table.name, "table", ".".join(found.name()))
        yield from self._files(task, root, None, frozenset())

    def _is_old(self, task: TidyTask, found: Table, root: _Root | None) -> bool:
        if root is None or task.open_seconds is not None:
            return False
        with catalog_errors(f"dataset {task.table.name}"):
            changed = root.store.modified(found.metadata_location)
            return changed is not None and root.store.now(root.location) - changed >= task.grace_seconds

    def _own_root(self, location: str, store: Store, table: TableRef) -> _Root | None:
        return own_root(location, store, table, self._tables.warehouse)

    def _files(
        self, task: TidyTask, root: _Root | None, recent: set[int | None] | None, without: frozenset[int]
    ) -> Iterator[Leftover]:
        """Remove files that nothing names.

        Args:
            task: the dataset.
            root: where they are; None: nothing is known to be the table's alone.
            recent: snapshots that are needed, in the table's metadata or not any more; None: there is no table.
            without: snapshots in the metadata that would be gone by now if this were no dry run.
        """
        if root is None:
            return
        age = task.grace_seconds
        if task.open_seconds is not None:
            age = max(age, task.open_seconds + MARGIN_SECONDS)
        with catalog_errors(f"dataset {task.table.name}"):
            old, lists = _listed(root, age)
            if not old:
                return
            # The names hold random ids, so they say enough, however an engine writes the path before them.
            needed: set[str] = set()
            if recent is not None:
                loaded = self._tables.load(task.table)
                if not _holds_all(loaded, task.table, task.of_arm(_ARM)):
                    return
                needed = _named(loaded, without, [path for id_, path in lists if id_ in recent])
        for file in old:
            if file.stored.name in needed:
                continue
            if not task.dry_run and not self._remove(file, root, task):
                continue
            yield Leftover(task.table.name, file.kind, file.stored.location, file.stored.bytes)

    def _remove(self, file: _File, root: _Root, task: TidyTask) -> bool:
        """Remove a file; False if another one that tidies was faster."""
        self._faults.at("maintain:file")
        with catalog_errors(f"dataset {task.table.name}"):
            return root.store.remove(file.stored.location)


def _holds_all(loaded: Table, table: TableRef, held: Iterable[HeldVersion]) -> bool:
    """Say whether the table has all readable versions. If not, the catalog's answer is old, or wrong."""
    present = {snapshot.snapshot_id for snapshot in loaded.metadata.snapshots}
    missing = [each.version for each in held if each.expired_seconds is None and each.snapshot_id not in present]
    if missing:
        log.warning(
            "dataset %s: its Iceberg table does not have the snapshot of version %d; nothing of it is removed",
            table.name,
            missing[-1],
        )
    return not missing


def _is_empty(found: Table, table: TableRef) -> bool:
    """Say whether a table holds only what our own first writes, all aborted, left in it."""
    return all(is_ours(snapshot, table, 1 << 62) for snapshot in found.metadata.snapshots)


def own_root(location: str, store: Store, table: TableRef, warehouse: str) -> _Root | None:
    """Return the place that is this table's alone, or None if that can't be said of its location.

    Args:
        location: the table's.
        store: where that is.
        table: the dataset, whose id the name of its own place ends with.
        warehouse: the address of the warehouse. Nothing outside of it is ever removed.
    """
    if not is_own_place(location, store, table, warehouse):
        log.warning(
            "dataset %s: %s is not its own place in the warehouse; nothing in it is removed", table.name, location
        )
        return None
    return _Root(location, store) if store.is_folder(location) else None


def is_own_place(location: str, store: Store, table: TableRef, warehouse: str) -> bool:
    """Say whether a place in the warehouse was made for a dataset: its name ends with the dataset's id."""
    named = location.rstrip("/").endswith(f"-{table.uid.hex[:12]}")
    return named and store.is_below(location, warehouse)


def _listed(root: _Root, age_seconds: float) -> tuple[list[_File], list[tuple[int, StoredFile]]]:
    """Return old files of known kinds, and all manifest lists with their snapshots."""
    old: list[_File] = []
    lists: list[tuple[int, StoredFile]] = []
    found = root.store.files(root.location)
    now = root.store.now(root.location) if found else 0.0
    for file in found:
        kind = next((kind for pattern, kind in _KINDS if pattern.search(file.name)), None)
        if kind is None:
            continue
        if match := _MANIFEST_LIST.fullmatch(file.name):
            lists.append((int(match[1]), file))
        if now - file.modified >= age_seconds:
            old.append(_File(file, kind))
    # Those that name others first, so that whoever stops in between leaves none that names what is gone.
    order = [kind for _, kind in _KINDS]
    old.sort(key=lambda file: (order.index(file.kind), not file.stored.name.startswith("snap-"), file.stored.location))
    return old, lists


def _named(loaded: Table, without: frozenset[int], recent: Iterable[StoredFile]) -> set[str]:
    """Return the names of all files that the table needs, and the given manifest lists with what they name."""
    metadata, io = loaded.metadata, loaded.io
    paths = [loaded.metadata_location]
    paths += [entry.metadata_file for entry in metadata.metadata_log]
    paths += [each.statistics_path for each in (*metadata.statistics, *metadata.partition_statistics)]
    manifests: dict[str, ManifestFile] = {}
    for snapshot in metadata.snapshots:
        if snapshot.snapshot_id not in without:
            paths.append(snapshot.manifest_list)
            manifests.update({manifest.manifest_path: manifest for manifest in snapshot.manifests(io)})
    for manifest in manifests.values():
        paths += [manifest.manifest_path, *_files_of(manifest, io)]
    for file in recent:
        try:
            paths.append(file.location)
            for manifest in read_manifest_list(io.new_input(file.location)):
                if manifests.setdefault(manifest.manifest_path, manifest) is manifest:
                    paths += [manifest.manifest_path, *_files_of(manifest, io)]
        except FileNotFoundError:
            # Another one that tidies, with a shorter grace, is at it.
            continue
    return {path.rpartition("/")[2] for path in paths}


def _files_of(manifest: ManifestFile, io: FileIO) -> list[str]:
    return [entry.data_file.file_path for entry in manifest.fetch_manifest_entry(io, discard_deleted=True)]
