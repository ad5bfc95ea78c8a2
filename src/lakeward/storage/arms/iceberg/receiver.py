"""What the Iceberg arm says of itself before a dataset comes to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.schema import Schema as IcebergSchema

from lakeward.control.catalog_abilities import KnownCatalog
from lakeward.control.identifiers import TableIdentifier
from lakeward.errors import LakewardError
from lakeward.storage.arms.iceberg.abilities import Abilities
from lakeward.storage.arms.iceberg.columns import TableColumns
from lakeward.storage.arms.iceberg.data_file import writer_options
from lakeward.storage.arms.iceberg.existing_tables import ExistingTables
from lakeward.storage.arms.iceberg.other_names import other_names
from lakeward.storage.arms.iceberg.presence import missing
from lakeward.storage.arms.iceberg.tables import Tables, physical_schema
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.arms.iceberg.unnumbered import as_first_written
from lakeward.storage.duck import Duck
from lakeward.storage.existing import ExistingTable
from lakeward.storage.receiving import Ability, Receiver
from lakeward.storage.table import TableRef

WAREHOUSE = "the warehouse"
"""What it is called in errors that are about no dataset."""


class IcebergReceiver(Receiver):
    """Looks ahead for the Iceberg arm.

    Args:
        tables: finds the dataset's table, if it has one.
        abilities: what the catalog can do.
        duck: reads rows.
    """

    def __init__(self, tables: Tables, abilities: Abilities, duck: Duck) -> None:
        self._tables = tables
        self._existing = ExistingTables(tables, duck)
        self._abilities = abilities

    def column_types(self, table: TableRef) -> dict[str, str]:
        """Read them from the table that there is, or from that which would be made."""
        schema, _ = self._columns(table)
        types = {field.field_id: str(field.field_type) for field in schema.fields}
        return {column.name: types[column.field_id] for column in table.schema.columns}

    def abilities(self, table: TableRef, size: int) -> list[Ability]:
        """Ask the catalog for the table, write a file into the warehouse, and look how much room there is."""
        return [self._catalog(table), *self._tried(size)]

    def reach(self) -> None:
        """List what is at its root."""
        with catalog_errors("the Iceberg catalog"):
            self._tables.catalog.list_namespaces()

    def missing(self, table: TableRef, snapshots: Mapping[int, int]) -> dict[int, str]:
        """Look in the table's metadata, and for the files."""
        return missing(self._tables, table, snapshots)

    def catalog(self, *, probe: bool = False) -> KnownCatalog:
        """Ask Postgres, or the catalog."""
        found = self._abilities.probe() if probe else self._abilities.known()
        return KnownCatalog(self._abilities.catalog, found)

    def second_names(self, tables: Sequence[TableRef]) -> dict[str, list[TableIdentifier]]:
        """Look wherever a table may have been."""
        return other_names(self._tables, tables)

    def has_table(self, identifier: TableIdentifier) -> bool:
        """Look in the catalog."""
        return self._tables.named(identifier, f"table {identifier}") is not None

    def existing(self, identifier: TableIdentifier, roots: Sequence[str]) -> ExistingTable:
        """Look in the catalog."""
        return self._existing.find(identifier, roots)

    def check_rows(self, table: TableRef, snapshot_id: int | None) -> int:
        """Read the key columns in DuckDB."""
        return self._existing.check_rows(table, snapshot_id)

    def rehearse(self, table: TableRef, rows: pa.RecordBatch) -> None:
        """Write a Parquet file in memory."""
        _, columns = self._columns(table)
        taken = pa.Table.from_batches([columns.take(rows)])
        with pq.ParquetWriter(pa.BufferOutputStream(), columns.arrow, **writer_options(taken)) as writer:
            writer.write_table(taken)

    def _columns(self, table: TableRef) -> tuple[IcebergSchema, TableColumns]:
        found = self._tables.find(table)
        schema = as_first_written(found.schema()) if found is not None else physical_schema(table)
        properties = found.properties if found is not None else {}
        return schema, TableColumns(schema, table.schema, f"dataset {table.name}", properties)

    def _catalog(self, table: TableRef) -> Ability:
        try:
            found = self._tables.find(table)
        except LakewardError as error:
            return Ability("catalog", False, error.message, error.next_step or "lakeward doctor")
        there = f"the table {'.'.join(found.name())} is there" if found is not None else "the table will be made"
        return Ability("catalog", True, f"it answers; {there}")

    def place(self) -> Ability:
        """Try the warehouse."""
        return self._tried(0)[0]

    def _tried(self, size: int) -> list[Ability]:
        try:
            store = self._tables.store(self._tables.warehouse, WAREHOUSE)
        except LakewardError as error:
            return [Ability("warehouse", False, error.message, error.next_step or "lakeward doctor")]
        return [store.writable(self._tables.warehouse), _room(store.free_bytes(self._tables.warehouse), size)]


def _room(free: int | None, size: int) -> Ability:
    copy = f"the copy has at most about {size / 1e6:,.1f} MB"
    if free is None:
        return Ability("disk", True, f"the store does not say how much is free; {copy}")
    found = f"{free / 1e6:,.1f} MB are free, {copy}"
    return Ability("disk", free > size, found, None if free > size else "free space, or choose another warehouse")
