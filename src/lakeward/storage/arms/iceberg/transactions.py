"""Transactions and a catalog whose cost does not grow with the number of a table's snapshots more than it must.

PyIceberg 0.12 copies the whole metadata, every snapshot of it, each time that a transaction is asked for it, which is
some thirty times in a write; and its SqlCatalog loads the table anew for each commit, and parses it for each load.
Metadata is never changed in place (an update makes another one that shares the rest), and a metadata file is never
written twice, so neither is needed.
"""

from __future__ import annotations

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

import psycopg
import sqlalchemy
from pyiceberg.catalog.sql import IcebergTables, SqlCatalog
from pyiceberg.exceptions import NoSuchTableError, TableAlreadyExistsError
from pyiceberg.table import CommitTableResponse, Table, Transaction
from pyiceberg.table.locations import load_location_provider
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.table.update import (
    TableRequirement,
    TableUpdate,
    _apply_table_update,
    _TableMetadataUpdateContext,
    _update_table_metadata_log,
)
from pyiceberg.typedef import Identifier
from pyiceberg.utils.datetime import datetime_to_millis
from sqlalchemy.engine import Engine

from lakeward.control.db import Queries
from lakeward.storage.arms.iceberg.formats import refuse_format

QUERIES = Queries.beside(__file__)

REMEMBERED = 16
"""So many tables' newest metadata are kept in memory."""


class LeanTransaction(Transaction):
    """A transaction that applies its updates once, and copies nothing."""

    _written_by: int | None = None
    _applied: tuple[TableMetadata, tuple[TableUpdate, ...], TableMetadata] | None = None

    def write_by(self, spec_id: int) -> None:
        """Let the table's metadata have this partition spec for its default: that of the files to commit.

        Another engine may have given the table another one since they were written. The commit leaves it that.
        """
        self._written_by, self._applied = spec_id, None

    @property
    def table_metadata(self) -> TableMetadata:
        """The table's metadata with the updates so far."""
        base, updates = self._table.metadata, self._updates
        if self._applied is None or self._applied[0] is not base or self._applied[1] is not updates:
            metadata = _apply(base, updates)[0]
            if self._written_by is not None and self._written_by != metadata.default_spec_id:
                metadata = metadata.model_copy(update={"default_spec_id": self._written_by})
            self._applied = (base, updates, metadata)
        return self._applied[2]


def _apply(metadata: TableMetadata, updates: Iterable[TableUpdate]) -> tuple[TableMetadata, bool]:
    """Return the metadata with the updates, which shares what they leave as it is; and whether they change anything."""
    context = _TableMetadataUpdateContext()
    for update in updates:
        metadata = _apply_table_update(update, metadata, context)
    return metadata, context.has_changes()


def _committed(table: Table, updates: Iterable[TableUpdate]) -> TableMetadata:
    """Return what a commit makes of the table's metadata; the same object if that is nothing."""
    before = table.metadata
    metadata, changed = _apply(before, updates)
    if not changed:
        return before
    metadata = _update_table_metadata_log(metadata, table.metadata_location, before.last_updated_ms)
    if metadata.last_updated_ms == before.last_updated_ms:
        metadata = metadata.model_copy(update={"last_updated_ms": datetime_to_millis(datetime.now().astimezone())})
    metadata.spec().check_compatible(metadata.schema())
    metadata.sort_order().check_compatible(metadata.schema())
    return metadata


_ENTRIES = sqlalchemy.select(
    IcebergTables.table_namespace, IcebergTables.table_name, IcebergTables.metadata_location
).where(
    IcebergTables.catalog_name == sqlalchemy.bindparam("catalog"),
    sqlalchemy.tuple_(IcebergTables.table_namespace, IcebergTables.table_name).in_(
        sqlalchemy.bindparam("names", expanding=True)
    ),
)
_ENTRIES_OF_TABLES = _ENTRIES.where((IcebergTables.iceberg_type == "TABLE") | (IcebergTables.iceberg_type.is_(None)))
"""The same in a catalog that says of each entry whether it is a table or a view."""


def _entry(catalog: str, namespace: str, name: str, location: str | None) -> IcebergTables:
    return IcebergTables(
        catalog_name=catalog,
        table_namespace=namespace,
        table_name=name,
        metadata_location=location,
        previous_metadata_location=None,
    )


class LeanSqlCatalog(SqlCatalog):
    """A catalog in SQL that parses each metadata file once, and asks the database once for each load and commit."""

    def __init__(self, name: str, **properties: str) -> None:
        self._remembered = _Remembered()
        self._single: LeanSqlCatalog | None = None
        super().__init__(name, **properties)

    def use(self, engine: Engine, single_statements: Engine) -> None:
        """Work through these engines instead of its own.

        Args:
            engine: for what takes more than one statement.
            single_statements: in autocommit mode; loads and commits are one statement each.
        """
        self.engine.dispose()
        self.engine = engine
        self._single = copy.copy(self)
        self._single.engine = single_statements

    def load_table(self, identifier: str | Identifier) -> Table:
        """Load a table, which will commit in single statements, too."""
        catalog = self._single or self
        found = catalog._entries([identifier])[0]
        if found is None:
            raise NoSuchTableError(f"Table does not exist: {identifier}")
        return catalog._convert_orm_to_iceberg(found)

    def load_each(self, identifiers: Sequence[str | Identifier]) -> list[Table | None]:
        """Load several tables; None where there is none, or it fails, which loading it by itself tells.

        That may be because its metadata file got too old, and was deleted just now.
        """
        catalog = self._single or self
        tables: list[Table | None] = []
        for entry in catalog._entries(identifiers):
            try:
                tables.append(catalog._convert_orm_to_iceberg(entry) if entry is not None else None)
            except (OSError, ValueError):
                tables.append(None)
        return tables

    def _entries(self, identifiers: Sequence[str | Identifier]) -> list[IcebergTables | None]:
        """Return what the catalog has of each table: PyIceberg's own way costs more than the question itself."""
        names = [
            (self.namespace_to_string(self.namespace_from(each)), self.table_name_from(each)) for each in identifiers
        ]
        statement = _ENTRIES if self._iceberg_type_filter() is None else _ENTRIES_OF_TABLES
        with self.engine.connect() as connection:
            rows = connection.execute(statement, {"catalog": self.name, "names": names}).all()
        found = {(namespace, name): _entry(self.name, namespace, name, location) for namespace, name, location in rows}
        return [found.get(name) for name in names]

    def commit_table(
        self, table: Table, requirements: tuple[TableRequirement, ...], updates: tuple[TableUpdate, ...]
    ) -> CommitTableResponse:
        """Commit on what the caller loaded, if that is still the newest: the statement says so. Else load it first."""
        for requirement in requirements:
            requirement.validate(table.metadata)
        # Of what moves a branch, too: the catalog writes the metadata itself.
        refuse_format(table)
        metadata = _committed(table, updates)
        if metadata is table.metadata:
            return super().commit_table(table, requirements, updates)
        number = self._parse_metadata_version(table.metadata_location) + 1
        provider = load_location_provider(metadata.location, metadata.properties)
        location = provider.new_table_metadata_file_location(number)
        self._write_metadata(metadata, self._load_file_io(metadata.properties, location), location)
        statement = (
            sqlalchemy.update(IcebergTables)
            .where(
                IcebergTables.catalog_name == self.name,
                IcebergTables.table_namespace == self.namespace_to_string(self.namespace_from(table.name())),
                IcebergTables.table_name == self.table_name_from(table.name()),
                IcebergTables.metadata_location == table.metadata_location,
            )
            .values(metadata_location=location, previous_metadata_location=table.metadata_location)
        )
        with self.engine.connect() as connection:
            moved = connection.execute(statement).rowcount
            connection.commit()
        if moved != 1:
            # The file that was written is named by nobody; maintenance finds it.
            return super().commit_table(table, requirements, updates)
        self._remembered.put(location, metadata)
        return CommitTableResponse.model_validate({"metadata": metadata, "metadata-location": location})

    def rename_within(
        self, execute: Callable[[str, Mapping[str, object]], int], source: Identifier, target: Identifier
    ) -> None:
        """Do what `rename_table` does by a statement of somebody's transaction. The target's namespace is there."""
        names: dict[str, object] = {"catalog": self.name}
        for side, identifier in (("from", source), ("to", target)):
            names[f"{side}_namespace"] = self.namespace_to_string(self.namespace_from(identifier))
            names[f"{side}_name"] = self.table_name_from(identifier)
        try:
            renamed = execute(QUERIES.for_driver("rename"), names)
        except psycopg.errors.UniqueViolation as error:
            raise TableAlreadyExistsError(f"Table already exists: {target}") from error
        if not renamed:
            raise NoSuchTableError(f"Table does not exist: {source}")

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
