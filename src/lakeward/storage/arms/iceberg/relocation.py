"""Gives a table another name in its catalog. Its metadata file and its data files stay where they are.

Whoever asks holds the dataset's slot, so nobody of us writes meanwhile. What is found decides what is left to do, so
that another process can go on where one was stopped. Where the catalog can't rename, see `second_name`.
"""

from __future__ import annotations

from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table

from lakeward.clock import Faults
from lakeward.control.moves import Relocated, Relocation
from lakeward.errors import CatalogError
from lakeward.storage.arms.iceberg.abilities import Abilities
from lakeward.storage.arms.iceberg.second_name import SecondName, refused
from lakeward.storage.arms.iceberg.tables import Tables
from lakeward.storage.arms.iceberg.trouble import settle
from lakeward.storage.guard import Guard
from lakeward.storage.table import TableRef

POINTS = ("move:rename",)
"""Every name that `Faults.at` is called with here."""


class Relocator:
    """Moves tables from name to name.

    Args:
        tables: finds them, and knows the catalog.
        abilities: what the catalog can do.
        faults: called between the steps.
    """

    def __init__(self, tables: Tables, abilities: Abilities, faults: Faults) -> None:
        self._tables = tables
        self._abilities = abilities
        self._faults = faults

    def relocate(self, table: TableRef, relocation: Relocation, guard: Guard) -> Relocated:
        """See `StorageArm.relocate`."""
        here = self._tables.owned(table, relocation.source)
        there = self._tables.at(table, relocation.target)
        if there is not None and not self._tables.owns(table, there):
            raise refused(table, relocation, "another table has that name")
        if here is None:
            if there is None:
                raise refused(table, relocation, f"{relocation.source} is not in the catalog")
            return _relocated("found", there)
        if there is not None and there.metadata.table_uuid != here.metadata.table_uuid:
            raise refused(table, relocation, "another table of the same dataset has that name")
        abilities = self._abilities.get()
        if abilities.rename and there is None:
            return self._rename(table, relocation, here, guard)
        if "register" not in abilities.ways:
            why = (
                abilities.lacks if there is None else "it has both names, and the catalog can't drop one of them alone"
            )
            raise refused(table, relocation, why, "`lakeward doctor` shows what the catalog can do")
        return _relocated("register", SecondName(self._tables, self._faults, table, relocation, guard).move())

    def obstacle(self, table: TableRef, relocation: Relocation) -> str | None:
        """See `StorageArm.obstacle`."""
        there = self._tables.at(table, relocation.target)
        if there is not None:
            # One of its own is a move's that was cut short.
            return None if self._tables.owns(table, there) else f"another table is called {relocation.target}"
        if self._tables.owned(table, relocation.source) is None:
            return f"{relocation.source} is not in the catalog"
        # What nobody has looked for yet, the first move does.
        abilities = self._abilities.known()
        return None if abilities is None or abilities.ways else abilities.lacks

    def _rename(self, table: TableRef, relocation: Relocation, here: Table, guard: Guard) -> Relocated:
        self._tables.ensure_namespace(relocation.target.namespace)

        def attempt() -> Table:
            moved = self._tables.owned(table, relocation.target)
            if moved is None:
                with guard() as held:
                    self._faults.at("move:rename")
                    self._tables.rename(relocation, held)
                moved = self._tables.owned(table, relocation.target)
            if moved is None:
                raise CatalogError(f"dataset {table.name}: the catalog renamed its table, and does not show it")
            return moved

        try:
            moved = settle(f"dataset {table.name}", attempt)
        except CatalogError as error:
            if isinstance(error.__cause__, TableAlreadyExistsError | NoSuchTableError):
                raise refused(table, relocation, str(error.__cause__)) from error
            raise
        if moved.metadata.table_uuid != here.metadata.table_uuid:
            raise CatalogError(f"dataset {table.name}: {relocation.target} is not the table that was moved")
        return _relocated("rename", moved)


def _relocated(way: str, table: Table) -> Relocated:
    return Relocated(way, table.metadata_location, table.metadata.current_snapshot_id)
