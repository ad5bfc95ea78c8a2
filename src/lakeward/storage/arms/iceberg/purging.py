"""Removes the tables of dropped datasets that can't come back: the catalog's entry, then each file that it named.

    list    every file that goes is noted in Postgres, before anything is removed
    entry   the catalog forgets the table; it is never asked to remove files
    files   one by one, and each is looked at again before it goes
    empty   the directories in which nothing is left

A file goes only if the table itself names it, it lies in the table's own directory once links are resolved, and no
other dataset's table names it. A table whose directory was not made for its dataset, in the warehouse, came under it as
it was: nothing of it is removed, and all that ends is that it says whose it is. Of a table that somebody took out of
the catalog nothing is removed, either: they may have it in another one, and what named its files is not known any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from pyiceberg.table import Table

from lakeward.clock import Faults
from lakeward.control.purges import DoomedFile, FileList, Purges
from lakeward.errors import CatalogError, Diverged
from lakeward.storage.arms.iceberg.named_files import named_files
from lakeward.storage.arms.iceberg.stores import Store, store_of
from lakeward.storage.arms.iceberg.tables import DATASET_PROPERTY, Tables
from lakeward.storage.arms.iceberg.trouble import catalog_errors, settle
from lakeward.storage.arms.iceberg.unnumbered import ADOPTED_AT
from lakeward.storage.arms.iceberg.upkeep import is_ours, is_own_place
from lakeward.storage.leftovers import Leftover, PurgeTask
from lakeward.storage.table import TableRef

log = logging.getLogger("lakeward.maintenance")


class Purger:
    """Purges Iceberg tables.

    Args:
        tables: finds them, and knows the catalog.
        purges: takes note of what is to go.
        faults: called as `purge:listed`, `purge:entry`, `purge:file` and `purge:emptied`.
    """

    def __init__(self, tables: Tables, purges: Purges, faults: Faults) -> None:
        self._tables = tables
        self._purges = purges
        self._faults = faults
        self._elsewhere: dict[str, frozenset[str]] = {}

    def purge(self, task: PurgeTask) -> Iterator[Leftover]:
        """Remove what there is of a dataset, and yield each thing when it is gone; in a dry run, that would go.

        Raises:
            CatalogError: the catalog does not answer, or not as it should.
            Diverged: another engine has written to the table since it was dropped.
        """
        dataset_id = task.table.dataset_id
        if self._purges.listed(dataset_id) is None:
            try:
                if task.dry_run:
                    yield from self._would_go(task)
                    return
                self._list(task)
            except CatalogError:
                # Another process may have noted the files meanwhile, and begun to remove what we were looking at.
                if self._purges.listed(dataset_id) is None:
                    raise
            self._faults.at("purge:listed")
        listed = self._purges.listed(dataset_id)
        if listed is None:
            return  # another process has come to the end of it meanwhile
        if task.dry_run:
            yield from (_leftover(task, file) for file in self._purges.files(dataset_id))
            return
        yield from self._forget_entry(task, listed.location)
        self._faults.at("purge:entry")
        if listed.location is not None:
            yield from self._files(task, listed.location)

    def _would_go(self, task: PurgeTask) -> Iterator[Leftover]:
        found = self._found(task)
        root = self._root(task, found)
        if found is None and task.held:
            self._note_taken(task)
        if found is not None and root is not None:
            yield from (_leftover(task, file) for file in self._doomed(task, found, root))
            yield Leftover(task.table.name, "table", ".".join(found.name()))

    def _list(self, task: PurgeTask) -> None:
        """Note the files that go, and where they are."""
        found = self._found(task)
        root = self._root(task, found)
        files = self._doomed(task, found, root) if found is not None and root is not None else iter(())
        self._purges.list_files(task.table.dataset_id, root, files)
        # Else another process has listed them, and then taken the table out itself.
        if found is None and task.held and self._purges.listed(task.table.dataset_id) == FileList(None):
            self._note_taken(task)

    def _note_taken(self, task: PurgeTask) -> None:
        task.note(
            f"dataset {task.table.name}: somebody took its table out of the catalog; what is left of its files, in "
            f"{self._tables.location(task.table)}, stays"
        )

    def _found(self, task: PurgeTask) -> Table | None:
        """Return the table; None if there is none of the dataset's."""
        found = self._tables.find(task.table)
        if found is None:
            return None
        published = {each.snapshot_id for each in task.held}
        head = found.current_snapshot()
        if head is not None and head.snapshot_id not in published and not is_ours(head, task.table, task.head_version):
            raise Diverged(
                f"the Iceberg table {'.'.join(found.name())} of dataset {task.table.name}, which was dropped, holds "
                "rows of another engine",
                safe="nothing of it was removed",
                next_step="take them elsewhere and set its main branch back in the catalog, then: lakeward maintain",
                dataset=task.table.name,
            )
        present = {snapshot.snapshot_id for snapshot in found.metadata.snapshots}
        if task.held and task.held[-1].snapshot_id not in present:
            raise CatalogError(
                f"the Iceberg table {'.'.join(found.name())} of dataset {task.table.name} does not have the snapshot "
                f"of version {task.held[-1].version}: the catalog's answer is old, or wrong",
                safe="nothing of it was removed",
                dataset=task.table.name,
            )
        return found

    def _root(self, task: PurgeTask, found: Table | None) -> str | None:
        """Return the table's directory, links resolved; None if it was not made for the dataset in the warehouse."""
        if found is None:
            return None
        store = store_of(found)
        if is_own_place(found.location(), store, task.table, self._tables.warehouse):
            return store.resolved(found.location())
        task.note(
            f"dataset {task.table.name}: its table {'.'.join(found.name())} at {found.location()} was not "
            "made for it in the warehouse: it stays in the catalog with all its files, and says no more whose it is"
        )
        return None

    def _doomed(self, task: PurgeTask, found: Table, root: str) -> Iterator[DoomedFile]:
        """Yield the files that may go."""
        claimed = self._claimed(root, task.others)
        with catalog_errors(f"dataset {task.table.name}"):
            store = store_of(found)
            for file in named_files(found):
                place = store.resolved(file.path)
                named = f"{file.path}, which dataset {task.table.name} names,"
                if not store.is_below(place, root):
                    task.note(f"{named} is not in its own directory, and stays")
                elif place in claimed:
                    task.note(f"{named} is in use by another one, and stays")
                elif (size := store.size(place)) is not None:
                    yield DoomedFile(place, file.kind, size)

    def _claimed(self, root: str, others: Sequence[TableRef]) -> frozenset[str]:
        """Return the files in a directory that other datasets' tables name."""
        found: set[str] = set()
        for other in others:
            try:
                found |= self._named_by(other, root)
            except CatalogError:
                # One that another process is purging has its own files noted, and claims none any more.
                if self._purges.listed(other.dataset_id) is None and not self._purges.is_purged(other.dataset_id):
                    raise
        return frozenset(path for path in found if _within(path, root))

    def _named_by(self, other: TableRef, root: str) -> frozenset[str]:
        """Return the files that a table names: all where its directory and `root` overlap, else those outside of it."""
        loaded = self._tables.load(other)
        with catalog_errors(f"dataset {other.name}"):
            store = store_of(loaded)
            own = store.resolved(loaded.location())
            if own == root or _within(own, root) or _within(root, own):
                return frozenset(store.resolved(each.path) for each in named_files(loaded))
            return self._outside(loaded, store, own)

    def _outside(self, loaded: Table, store: Store, own: str) -> frozenset[str]:
        """Return the files that a table names outside its own directory, remembered for as long as it stays the same.

        Those that we write are all inside; other engines may have added others.
        """
        key = loaded.metadata_location
        if key not in self._elsewhere:
            places = (store.resolved(each.path) for each in named_files(loaded))
            self._elsewhere[key] = frozenset(place for place in places if not _within(place, own))
        return self._elsewhere[key]

    def _forget_entry(self, task: PurgeTask, root: str | None) -> Iterator[Leftover]:
        """Take the table out of the catalog; or, if it is not ours to remove, its word that it is the dataset's."""
        found = self._tables.find(task.table)
        if found is None:
            return
        if root is None:
            self._let_go(task.table)
            return
        if store_of(found).resolved(found.location()) != root:
            raise CatalogError(
                f"the Iceberg table {'.'.join(found.name())} of dataset {task.table.name} was at {root} when its files "
                f"were listed, and is at {found.location()} now",
                safe="nothing of it was removed",
                dataset=task.table.name,
            )
        self._tables.drop(found)
        if self._tables.find(task.table) is not None:
            raise CatalogError(
                f"dataset {task.table.name}: the catalog dropped its table {'.'.join(found.name())}, and still has it",
                safe="no file of it was removed",
                next_step="lakeward maintain",
                dataset=task.table.name,
            )
        yield Leftover(task.table.name, "table", ".".join(found.name()))

    def _let_go(self, table: TableRef) -> None:
        def attempt() -> None:
            found = self._tables.find(table)
            if found is not None:
                ours = [name for name in (DATASET_PROPERTY, ADOPTED_AT) if name in found.properties]
                with found.transaction() as transaction:
                    transaction.remove_properties(*ours)

        settle(f"dataset {table.name}", attempt)

    def _files(self, task: PurgeTask, root: str) -> Iterator[Leftover]:
        """Remove the files that were listed, and the directories that are empty then."""
        what = f"dataset {task.table.name}"
        store = self._tables.store(root, what)
        for file in self._purges.files(task.table.dataset_id):
            self._faults.at("purge:file")
            # The list is a day's old, perhaps: links may have come.
            if store.resolved(file.path) != file.path or not store.is_below(file.path, root):
                task.note(f"{file.path} of dataset {task.table.name} is not in its own directory any more, and stays")
            else:
                with catalog_errors(what):
                    store.remove(file.path)
                yield _leftover(task, file)
            self._purges.forget_file(task.table.dataset_id, file)
        self._faults.at("purge:emptied")
        with catalog_errors(what):
            left = store.clear(root)
        if left:
            task.note(f"{root} of dataset {task.table.name}: {left:,} files in it are named by no table, and stay")


def _within(place: str, root: str) -> bool:
    """Say whether a place is in another, however deep; it is not in one whose name only begins like its own."""
    return place.startswith(f"{root}/")


def _leftover(task: PurgeTask, file: DoomedFile) -> Leftover:
    return Leftover(task.table.name, file.kind, file.path, file.bytes)
