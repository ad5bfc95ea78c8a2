"""Where a dataset's Iceberg table is: the catalog, the namespace, loading it, and its birth."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Sequence

import sqlalchemy
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError, TableAlreadyExistsError
from pyiceberg.io import PY_IO_IMPL
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table

from lakeward.control.db import Database
from lakeward.control.identifiers import LEGACY_NAMESPACE, TableIdentifier
from lakeward.control.moves import Moves, Relocation
from lakeward.errors import CatalogError
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.catalogs import names_catalog, open_catalog
from lakeward.storage.arms.iceberg.file_io import FILE_IO
from lakeward.storage.arms.iceberg.partitions import partition_spec
from lakeward.storage.arms.iceberg.stores import Store, store_at, store_of
from lakeward.storage.arms.iceberg.transactions import LeanSqlCatalog
from lakeward.storage.arms.iceberg.trouble import catalog_errors, settle
from lakeward.storage.guard import Held
from lakeward.storage.identity import with_identity
from lakeward.storage.settings import StorageSettings
from lakeward.storage.table import TableRef
from lakeward.storage.warehouse import table_location, warehouse_uri
from lakeward.types.table import arrow_schema

CATALOG_NAME = "lakeward"

DATASET_PROPERTY = "lakeward.dataset"
"""In a table's properties and in every snapshot's summary: the dataset's uid."""
VERSION_PROPERTY = "lakeward.version"
BUILD_PROPERTY = "lakeward.build"

_CATALOG_LOCK = 0x1CEB3A2D

LOOKS = 3
"""How often a table that is not where it was is looked for where the control plane says, in case it is being moved."""

_PROPERTIES = {
    "format-version": "2",
    "write.parquet.compression-codec": "zstd",
    # Files of a snapshot that was dropped from one name may still be read through another one.
    "gc.enabled": "false",
    # What a commit costs must not grow with the number of commits before it: small manifests become one, and metadata
    # files are deleted when so many newer ones are there. A reader that was slower than all of those loads again.
    "commit.manifest-merge.enabled": "true",
    "commit.manifest.min-count-to-merge": "32",
    "write.metadata.previous-versions-max": "50",
    "write.metadata.delete-after-commit.enabled": "true",
}


class Tables:
    """The Iceberg tables of a workspace's datasets."""

    def __init__(self, database: Database, settings: StorageSettings) -> None:
        self._database = database
        self._settings = settings
        self._moves = Moves(database)
        self._lock = threading.Lock()
        self._catalog: Catalog | None = None

    @property
    def catalog(self) -> Catalog:
        """The catalog, connected on first use."""
        with self._lock:
            if self._catalog is None:
                with catalog_errors("the Iceberg catalog"):
                    self._catalog = self._open()
            return self._catalog

    @property
    def moves(self) -> Moves:
        """Where tables have been brought, and where they are being brought."""
        return self._moves

    def _open(self) -> Catalog:
        configured = dict(self._settings.catalog)
        if names_catalog(configured):
            return open_catalog(configured.pop("name", CATALOG_NAME), configured)
        with self._database.transaction() as connection:
            # Two processes that make the catalog's tables at once: the second waits here and finds them.
            connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _CATALOG_LOCK})
            place = {"uri": self._database.sqlalchemy_url, "warehouse": self.warehouse}
            catalog = LeanSqlCatalog(CATALOG_NAME, **{PY_IO_IMPL: FILE_IO} | configured | place)
        # Ours instead of its own: one pool for the process, and no prepared statements, for transaction-mode poolers.
        catalog.use(self._database.engine, self._database.single_statements)
        return catalog

    @property
    def warehouse(self) -> str:
        """The address of the place that all tables are made below."""
        return warehouse_uri(self._settings.warehouse)

    def store(self, location: str, what: str) -> Store:
        """Return the store of a location of which there is no table, reached as the catalog's settings say.

        Args:
            location: the warehouse, or one in it.
            what: names it in errors.
        """
        with catalog_errors(what):
            return store_at(self.catalog._load_file_io(location=location), location, what)

    def load(self, table: TableRef) -> Table:
        """Load a dataset's table from where the control plane says it is, now if it was moved since the caller looked.

        Raises:
            CatalogError: it is not there, or is another dataset's, or the catalog does not answer.
        """
        found = self.owned(table, table.identifier)
        if found is not None:
            return found
        for _ in range(LOOKS):
            for identifier in self._moves.places(table.dataset_id):
                found = self.owned(table, identifier)
                if found is not None:
                    return found
        # As the control plane had it last: whatever else is there, it is none of ours.
        identifier = self._moves.places(table.dataset_id)[0]
        found = self.at(table, identifier)
        if found is not None:
            self._check_owner(table, found)
            return found
        raise CatalogError(
            f"the table {identifier} of dataset {table.name} is not in the catalog",
            safe="the ledger still has every committed version",
            next_step="restore the catalog's entry, or read from the other arm if it is current",
            dataset=table.name,
        )

    def load_each(self, tables: Sequence[TableRef]) -> list[Table]:
        """Load several datasets' tables as `load` does; a catalog in SQL is asked once for all that are there."""
        found: list[Table | None] = [None] * len(tables)
        if isinstance(self.catalog, LeanSqlCatalog):
            with catalog_errors("the Iceberg catalog"):
                found = self.catalog.load_each([table.identifier.parts for table in tables])
        return [
            self._known(each, f"dataset {table.name}")
            if each is not None and self.owns(table, each)
            else self.load(table)
            for table, each in zip(tables, found, strict=True)
        ]

    def find(self, table: TableRef) -> Table | None:
        """Load a dataset's table wherever it may be, an unfinished first write's too, or return None.

        Another one's table in such a place is none of ours.
        """
        for identifier in dict.fromkeys([table.identifier, table.home, *_legacy(table)]):
            found = self.owned(table, identifier)
            if found is not None:
                return found
        return None

    def owned(self, table: TableRef, identifier: TableIdentifier) -> Table | None:
        """Load the table of that name if it is the dataset's; None: there is none, or it is another one's."""
        found = self.at(table, identifier)
        return found if found is not None and self.owns(table, found) else None

    def at(self, table: TableRef, identifier: TableIdentifier) -> Table | None:
        """Load the table of that name, whosever it is; None: there is none."""
        return self.named(identifier, f"dataset {table.name}")

    def named(self, identifier: TableIdentifier, what: str) -> Table | None:
        """Load the table of that name, whosever it is; None: there is none.

        Args:
            identifier: its name.
            what: names it in errors, the dataset's or its own.
        """
        with catalog_errors(what):
            try:
                try:
                    found = self.catalog.load_table(identifier.parts)
                except FileNotFoundError:
                    # Between the catalog's answer and our look, its metadata file got too old and was deleted.
                    found = self.catalog.load_table(identifier.parts)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            return self._known(found, what)

    @staticmethod
    def _known(found: Table, what: str) -> Table:
        # From here on, DuckDB reads its files by these keys, and errors name it so.
        store_of(found, what)
        return found

    @staticmethod
    def owns(table: TableRef, found: Table) -> bool:
        """Say whether a table is the dataset's."""
        return _owner(found) == str(table.uid)

    def give_birth(self, table: TableRef, writer: str) -> Table:
        """Make a dataset's table, empty, or return the one that an aborted first write left.

        Its first snapshot is an empty root: PyIceberg can't write to a branch of a table without one.

        Args:
            table: the dataset.
            writer: the named place in the product that writes first; the settings say whether in place, see `home`.
        """
        return settle(f"dataset {table.name}", lambda: self._birth(table, writer))

    def _birth(self, table: TableRef, writer: str) -> Table:
        made = self.find(table)
        if made is None:
            made = self._create(table, birthplaces(table, in_place=self._settings.in_place(writer)))
        if made.current_snapshot() is None:
            branches.commit_root(made, {DATASET_PROPERTY: str(table.uid), VERSION_PROPERTY: "0"})
        return made

    def _create(self, table: TableRef, identifiers: Sequence[TableIdentifier]) -> Table:
        """Make a table under the first of these names that is free, parents first."""
        schema = physical_schema(table)
        taken: TableAlreadyExistsError | None = None
        for identifier in identifiers:
            self.ensure_namespace(identifier.namespace)
            try:
                return self.catalog.create_table(
                    identifier.parts,
                    schema=schema,
                    partition_spec=partition_spec(table.partition_by, table.schema, schema.column_names),
                    location=self.location(table),
                    properties={**_PROPERTIES, DATASET_PROPERTY: str(table.uid)},
                )
            except TableAlreadyExistsError as error:
                taken = error
        # Of another dataset or somebody else, unless two first writes of ours met.
        there = self.at(table, identifiers[-1])
        if there is None:
            raise CatalogError(f"dataset {table.name}: the catalog refused its table, and shows none") from taken
        self._check_owner(table, there)
        return there

    def ensure_namespace(self, namespace: tuple[str, ...]) -> None:
        """Make a namespace and its parents, the outermost first, where they are missing."""
        for depth in range(1, len(namespace) + 1):
            self.catalog.create_namespace_if_not_exists(namespace[:depth])

    def location(self, table: TableRef) -> str:
        """Return where a new table of this dataset keeps its files: a directory that is no other one's, ever."""
        return table_location(self._settings.warehouse, table.slugs, table.uid.hex[:12])

    def rename(self, relocation: Relocation, held: Held) -> None:
        """Rename a table; in our own catalog in the transaction that proves that this is still ours to do.

        A catalog elsewhere can't be asked under that condition: what is sent to it may arrive after others took over.
        """
        source, target = relocation.source.parts, relocation.target.parts
        if isinstance(self.catalog, LeanSqlCatalog):
            self.catalog.rename_within(held.execute, source, target)
        else:
            self.catalog.rename_table(source, target)

    def drop(self, found: Table) -> None:
        """Take a table out of the catalog; its files stay. Nothing happens if it is gone already.

        Raises:
            CatalogError: the catalog failed; the table may be gone, or go later.
        """
        with catalog_errors(f"table {'.'.join(found.name())}"), contextlib.suppress(NoSuchTableError):
            self.catalog.drop_table(found.name())

    @staticmethod
    def _check_owner(table: TableRef, found: Table) -> None:
        owner = _owner(found)
        if owner != str(table.uid):
            raise CatalogError(
                f"the Iceberg table {'.'.join(found.name())} belongs to {owner or 'somebody else'}, not to dataset "
                f"{table.name}",
                safe="it was not touched",
                next_step="rename that table, or the dataset",
                dataset=table.name,
            )


def birthplaces(table: TableRef, *, in_place: bool) -> list[TableIdentifier]:
    """Return the names under which a new table of a dataset may be made, the first that is free.

    What was declared counts whatever the settings say. In the legacy namespace two datasets can have one slug: the
    second gets a part of its uid behind it.
    """
    return [table.home] if in_place or table.declared_home is not None else _legacy(table)


def _legacy(table: TableRef) -> list[TableIdentifier]:
    slug = table.slugs[2]
    return [TableIdentifier(LEGACY_NAMESPACE, name) for name in (slug, f"{slug}_{table.uid.hex[:8]}")]


def _owner(found: Table) -> str | None:
    """Return the uid of the dataset that a table says it is of."""
    return found.properties.get(DATASET_PROPERTY)


def physical_schema(table: TableRef) -> Schema:
    """Return the schema of the physical table: the business columns, then the identity columns.

    PyIceberg numbers the fields of a new table level by level, so the business columns get the ids 1 to n, which are
    those that the control plane gave them.
    """
    unnumbered = Catalog._convert_schema_if_needed(with_identity(arrow_schema(table.schema)))
    return assign_fresh_schema_ids(unnumbered)
