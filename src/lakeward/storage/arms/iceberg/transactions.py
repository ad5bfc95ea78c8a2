"""Transactions and a catalog whose cost does not grow with the number of a table's snapshots more than it must.

PyIceberg 0.12 copies the whole metadata, every snapshot of it, each time that a transaction is asked for it, which is
some thirty times in a write; and its SqlCatalog parses the metadata file anew for each load, five times in a write.
Metadata is never changed in place (an update makes another one that shares the rest), and a metadata file is never
written twice, so neither is needed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.table import Table, Transaction
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import TableUpdate, _apply_table_update, _TableMetadataUpdateContext

REMEMBERED = 16
"""So many tables' newest metadata are kept in memory."""


class LeanTransaction(Transaction):
    """A transaction that applies its updates once, and copies nothing."""

    _applied: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with the updates so far."""
        base, updates = self._table.metadata, self._updates
        if self._applied is None or self._applied[0] is not base or self._applied[1] is not updates:
            context = _TableMetadataUpdateContext()
            metadata = base
            for update in updates:
                metadata = _apply_table_update(update, metadata, context)
            self._applied = (base, updates, metadata)
        return self._applied[2]


class LeanSqlCatalog(SqlCatalog):
    """A catalog in SQL that parses each metadata file once."""

    def __init__(self, name: str, **properties: str) -> None:
        self._remembered = _Remembered()
        super().__init__(name, **properties)

    def _convert_orm_to_iceberg(self, orm_table: IcebergTables) -> Table:
        location = str(orm_table.metadata_location)
        metadata = self._remembered.get(location)
        if metadata is None:
            loaded = super()._convert_orm_to_iceberg(orm_table)
            self._remembered.put(location, loaded.metadata)
            return loaded
        return Table(
            identifier=(*self.identifier_to_tuple(str(orm_table.table_namespace)), str(orm_table.table_name)),
            metadata=metadata,
            metadata_location=location,
            io=self._load_file_io(metadata.properties, location),
            catalog=self,
        )


class _Remembered:
    """Metadata by the location of its file, of which the least lately used goes first. For all threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._metadata: OrderedDict[str, TableMetadata] = OrderedDict()

    def get(self, location: str) -> TableMetadata | None:
        with self._lock:
            found = self._metadata.get(location)
            if found is not None:
                self._metadata.move_to_end(location)
            return found

    def put(self, location: str, metadata: TableMetadata) -> None:
        with self._lock:
            self._metadata[location] = metadata
            while len(self._metadata) > REMEMBERED:
                self._metadata.popitem(last=False)
