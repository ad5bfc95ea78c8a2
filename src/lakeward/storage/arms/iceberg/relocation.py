"""Gives a table another name in its catalog. Its metadata file and its data files stay where they are.

Whoever asks holds the dataset's slot, so nobody of us writes meanwhile. What is found decides what is left to do, so
that another process can go on where one was stopped.
"""

from __future__ import annotations

from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import Table

from lakeward.control.moves import Relocated, Relocation
from lakeward.errors import CatalogError, MoveRefused
from lakeward.storage.arms.iceberg.tables import Tables
from lakeward.storage.arms.iceberg.trouble import settle
from lakeward.storage.table import TableRef


class Relocator:
    """Moves tables from name to name.

    Args:
        tables: finds them, and knows the catalog.
    """

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def relocate(self, table: TableRef, relocation: Relocation) -> Relocated:
        """See `StorageArm.relocate`."""
        here = self._tables.owned(table, relocation.source)
        there = self._tables.at(table, relocation.target)
        if there is not None and not self._tables.owns(table, there):
            raise self._refused(table, relocation, "another table has that name")
        if here is None:
            if there is None:
                raise self._refused(table, relocation, f"{relocation.source} is not in the catalog")
            return _relocated("found", there)
        return self._rename(table, relocation, here)

    def _rename(self, table: TableRef, relocation: Relocation, here: Table) -> Relocated:
        self._tables.ensure_namespace(relocation.target.namespace)

        def attempt() -> Table:
            moved = self._tables.owned(table, relocation.target)
            if moved is None:
                self._tables.catalog.rename_table(relocation.source.parts, relocation.target.parts)
                moved = self._tables.owned(table, relocation.target)
            if moved is None:
                raise CatalogError(f"dataset {table.name}: the catalog renamed its table, and does not show it")
            return moved

        try:
            moved = settle(f"dataset {table.name}", attempt)
        except CatalogError as error:
            if isinstance(error.__cause__, TableAlreadyExistsError | NoSuchTableError):
                raise self._refused(table, relocation, str(error.__cause__)) from error
            raise
        if moved.metadata.table_uuid != here.metadata.table_uuid:
            raise CatalogError(f"dataset {table.name}: {relocation.target} is not the table that was moved")
        return _relocated("rename", moved)

    @staticmethod
    def _refused(table: TableRef, relocation: Relocation, why: str) -> MoveRefused:
        return MoveRefused(
            f"the table of dataset {table.name} can't be moved to {relocation.target}: {why}",
            safe=f"nothing was changed; it is {relocation.source}",
            dataset=table.name,
        )


def _relocated(way: str, table: Table) -> Relocated:
    return Relocated(way, table.metadata_location, table.metadata.current_snapshot_id)
