"""Moves a table where the catalog can't rename: it gets its new name beside the old one, and then the old name goes.

    register   the newest metadata file of the old name, under the new one
    prove      the table is read through the new name: the same uuid, pointer and files, and some of them opened
    look       at the old name again: has it moved on, the new entry goes, and its newest metadata is registered
    unname     the old name is dropped, its files kept
    prove      the table is read through its only name

What is found decides what is left to do, so anybody can go on anywhere. Three things could lose rows, and can't happen:

* Two names that are both written to. Writers of ours wait for the slot, which the move holds, and write to the recorded
  name, which changes when all this is done. For other engines the metadata files say who went on from whom: that one
  stays. If both did, nothing is dropped.
* Files that are deleted with a name. The catalog was seen to keep them (`drop_keeps_files`), is told so, and the table
  says `gc.enabled=false`.
* A process that was stopped, is taken over, wakes up, and drops a name that has become the only one. Every request
  that changes something is made under the move's lock in Postgres (`Guard`), right after a look at the table. Whoever
  wakes up after it was taken over does not get the lock; whoever is stopped while it holds the lock keeps others away
  until it is answered, or for two seconds. So the lock is asked for once more between the look and a drop. What is left
  is a request that was sent, and arrives later than that: to register is then refused, since the name is taken; to drop
  the old name finds nothing, unless the table was moved back meanwhile. Its files are all there then, and
  `iceberg_sync_log` has its metadata file.

What another engine commits to the old name between the last look and the drop is not in the catalog any more, though
its files are there: the protocol of catalogs has no drop under a condition. Let other engines pause while tables move.
"""

from __future__ import annotations

import logging

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import FileScanTask, Table

from lakeward.clock import Faults
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.moves import Relocation
from lakeward.errors import CatalogError, MoveRefused
from lakeward.storage.arms.iceberg.stores import store_of
from lakeward.storage.arms.iceberg.tables import Tables
from lakeward.storage.arms.iceberg.trouble import settle
from lakeward.storage.guard import Guard
from lakeward.storage.table import TableRef

POINTS = ("move:register", "move:registered", "move:proved", "move:unname", "move:unnamed")
"""Every name that `Faults.at` is called with here, in order."""

TRIES = 3
"""How often the newest metadata is registered, if the old name moves on meanwhile."""

SAMPLE = 4
"""So many data files are opened through the new name, the first and the last among them."""

_KEEPS_FILES = "gc.enabled"

log = logging.getLogger("lakeward.moving")


class SecondName:
    """Moves one table.

    Args:
        tables: finds it, and knows the catalog, which registers beside and drops without deleting files.
        faults: called between the steps.
        table: the dataset, whose slot is held.
        relocation: from which name to which.
        guard: is entered around each request that changes something.
    """

    def __init__(self, tables: Tables, faults: Faults, table: TableRef, relocation: Relocation, guard: Guard) -> None:
        self._tables = tables
        self._faults = faults
        self._table = table
        self._relocation = relocation
        self._guard = guard
        self._what = f"dataset {table.name}"

    def move(self) -> Table:
        """Bring the table under its new name alone, from wherever it was left.

        Raises:
            MoveRefused: it can't be read through the new name, or the old one never comes to rest; the new one is gone
                again. Or both names were written to, and both stay.
            LeaseLost: another process took over, and does it.
            CatalogError: the catalog failed; the table has its old name, its new one, or both.
        """
        source, target = self._relocation.source, self._relocation.target
        self._tables.ensure_namespace(target.namespace)
        for _ in range(TRIES):
            here, there = self._tables.owned(self._table, source), self._tables.owned(self._table, target)
            if here is None:
                break
            here = self._keep_files(here)
            if there is not None and not (_same(here, there) or _goes_on(there, here)):
                self._check_older(there, here)
                self._unname(target, there)
                there = None
            if there is None:
                there = self._register(here)
            self._prove(there, here)
            self._faults.at("move:proved")
            if self._unname(source, here):
                self._faults.at("move:unnamed")
                break
            log.info("%s: %s has moved on, so its newest metadata is registered", self._what, source)
        else:
            self._take_back()
            raise refused(self._table, self._relocation, f"another engine went on writing to {source}")
        return self._alone()

    def _register(self, here: Table) -> Table:
        self._faults.at("move:register")
        target = self._relocation.target

        def attempt() -> Table:
            made = self._tables.owned(self._table, target)
            if made is None:
                with self._guard():
                    self._tables.catalog.register_table(target.parts, here.metadata_location)
                made = self._tables.owned(self._table, target)
            if made is None:
                raise CatalogError(f"{self._what}: the catalog registered {target}, and does not show it")
            return made

        try:
            made = settle(self._what, attempt)
        except CatalogError as error:
            if isinstance(error.__cause__, TableAlreadyExistsError):
                raise refused(self._table, self._relocation, "another table has that name") from error
            raise
        self._faults.at("move:registered")
        return made

    def _unname(self, identifier: TableIdentifier, seen: Table) -> bool:
        """Drop a name of the table, its files kept; False, and nothing is dropped, if it has moved on from `seen`."""

        def attempt() -> bool:
            with self._guard() as held:
                found = self._tables.owned(self._table, identifier)
                if found is None:
                    return True
                if found.metadata_location != seen.metadata_location:
                    return False
                self._faults.at("move:unname")
                held.check()
                try:
                    self._tables.catalog.drop_table(identifier.parts)
                except NoSuchTableError:
                    return True
            if self._tables.owned(self._table, identifier) is not None:
                raise CatalogError(f"{self._what}: the catalog dropped {identifier}, and still shows it")
            return True

        return settle(self._what, attempt)

    def _keep_files(self, here: Table) -> Table:
        """Tell all engines to leave the table's files alone, where that is not said yet. Our own tables say it."""

        def attempt() -> Table:
            found = self._tables.owned(self._table, self._relocation.source) or here
            if found.properties.get(_KEEPS_FILES) != "false":
                with self._guard(), found.transaction() as transaction:
                    transaction.set_properties({_KEEPS_FILES: "false"})
            return found

        return here if here.properties.get(_KEEPS_FILES) == "false" else settle(self._what, attempt)

    def _check_older(self, there: Table, here: Table) -> None:
        """See that the new name holds nothing that the old one has not."""
        if _goes_on(here, there):
            return
        raise refused(
            self._table,
            self._relocation,
            f"both names were written to: {self._relocation.source} is at {here.metadata_location}, and "
            f"{self._relocation.target} at {there.metadata_location}",
            "drop the one without purge that holds nothing you need; `lakeward doctor` shows both",
        )

    def _prove(self, there: Table, here: Table) -> None:
        """Read the table through its new name; if that fails, take the name away again."""
        why = None
        if here.metadata.table_uuid != there.metadata.table_uuid:
            why = "the new name shows another table"
        elif _same(here, there) and _files(here) != _files(there):
            why = "the new name shows other files"
        else:
            why = _unreadable(there)
        if why is not None:
            self._take_back()
            raise refused(self._table, self._relocation, why)

    def _take_back(self) -> None:
        """Drop the new name, if it holds nothing that the old one has not."""
        here = self._tables.owned(self._table, self._relocation.source)
        there = self._tables.owned(self._table, self._relocation.target)
        if here is not None and there is not None and (_same(here, there) or _goes_on(here, there)):
            self._unname(self._relocation.target, there)

    def _alone(self) -> Table:
        """Read the table through its only name, which that is while the move is in our hands."""
        with self._guard():
            there = self._tables.owned(self._table, self._relocation.target)
        why = "it is not there" if there is None else _unreadable(there)
        if there is None or why is not None:
            raise CatalogError(
                f"{self._what}: {self._relocation.target} is its only name now, and can't be read: {why}",
                safe="the ledger knows every committed version; no file was deleted",
                next_step="bring the catalog and the warehouse back, then `lakeward ledger recover`",
                dataset=self._table.name,
            )
        return there


def refused(table: TableRef, relocation: Relocation, why: str, next_step: str | None = None) -> MoveRefused:
    """Return the error of a table that can't have its new name."""
    return MoveRefused(
        f"the table of dataset {table.name} can't be moved to {relocation.target}: {why}",
        safe=f"it is {relocation.source} as before, and no file was touched",
        next_step=next_step,
        dataset=table.name,
    )


def _same(one: Table, other: Table) -> bool:
    return one.metadata_location == other.metadata_location


def _goes_on(newer: Table, older: Table) -> bool:
    """Say whether a table's metadata came of the other one's."""
    return older.metadata_location in {entry.metadata_file for entry in newer.metadata.metadata_log}


def _tasks(table: Table) -> list[FileScanTask]:
    """Return the files of the head, in the order of their paths. A table without a snapshot has none."""
    if table.current_snapshot() is None:
        return []
    return sorted(table.scan().plan_files(), key=lambda task: task.file.file_path)


def _files(table: Table) -> list[tuple[str, int, int]]:
    return [(task.file.file_path, task.file.record_count, len(task.delete_files)) for task in _tasks(table)]


def _unreadable(table: Table) -> str | None:
    """Open a sample of the head's files; return what is wrong, or None."""
    try:
        tasks, store = _tasks(table), store_of(table)
        step = max(1, (len(tasks) - 1) // (SAMPLE - 1))
        for task in tasks[::step]:
            rows = pq.read_metadata(store.opened(task.file.file_path)).num_rows
            if rows != task.file.record_count:
                return f"{task.file.file_path} has {rows} rows, and {task.file.record_count} by its manifest"
    except (OSError, pa.ArrowException) as error:
        return f"its files can't be read: {error}"
    return None
