"""Where a dataset's Iceberg table is: the catalog, the namespace, loading it, and its birth."""

from __future__ import annotations

import contextlib
import threading

import sqlalchemy
from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.schema import Schema, assign_fresh_schema_ids
from pyiceberg.table import Table

from lakeward.control.db import Database
from lakeward.control.tree import LEGACY_NAMESPACE
from lakeward.errors import CatalogError
from lakeward.storage.arms.iceberg import branches
from lakeward.storage.arms.iceberg.catalogs import open_catalog
from lakeward.storage.arms.iceberg.partitions import partition_spec
from lakeward.storage.arms.iceberg.transactions import LeanSqlCatalog
from lakeward.storage.arms.iceberg.trouble import catalog_errors, settle
from lakeward.storage.identity import with_identity
from lakeward.storage.settings import StorageSettings
from lakeward.storage.table import TableRef
from lakeward.types.table import arrow_schema

CATALOG_NAME = "lakeward"

DATASET_PROPERTY = "lakeward.dataset"
"""In a table's properties and in every snapshot's summary: the dataset's uid."""
VERSION_PROPERTY = "lakeward.version"
BUILD_PROPERTY = "lakeward.build"

_CATALOG_LOCK = 0x1CEB3A2D

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

    def _open(self) -> Catalog:
        configured = dict(self._settings.catalog)
        if configured:
            return open_catalog(configured.pop("name", CATALOG_NAME), configured)
        with self._database.transaction() as connection:
            # Two processes that make the catalog's tables at once: the second waits here and finds them.
            connection.execute(sqlalchemy.text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _CATALOG_LOCK})
            catalog = LeanSqlCatalog(
                CATALOG_NAME, uri=self._database.sqlalchemy_url, warehouse=warehouse_uri(self._settings)
            )
        # Ours instead of its own: one pool for the process, and no prepared statements, for transaction-mode poolers.
        catalog.use(self._database.engine, self._database.single_statements)
        return catalog

    def load(self, table: TableRef) -> Table:
        """Load a dataset's table from where the control plane says it is.

        Raises:
            CatalogError: it is not there, or is another dataset's, or the catalog does not answer.
        """
        return self.load_at(table, table.iceberg_namespace or LEGACY_NAMESPACE)

    def load_at(self, table: TableRef, namespace: tuple[str, ...]) -> Table:
        """Load a dataset's table from a namespace that is not persisted yet: that of a first write under way."""
        found = self._find(table, namespace)
        if found is None:
            raise CatalogError(
                f"the table {'.'.join((*namespace, table.slugs[2]))} of dataset {table.name} is not in the catalog",
                safe="the ledger still has every committed version",
                next_step="restore the catalog's entry, or read from the other arm if it is current",
                dataset=table.name,
            )
        self._check_owner(table, found)
        return found

    def find(self, table: TableRef) -> Table | None:
        """Load a dataset's table wherever an unfinished first write may have made it, or return None.

        Another one's table in that place is none of ours.
        """
        places = [table.iceberg_namespace] if table.iceberg_namespace else [self.birthplace(table), LEGACY_NAMESPACE]
        for place in places:
            found = self._find(table, place)
            if found is not None and found.properties.get(DATASET_PROPERTY) == str(table.uid):
                return found
        return None

    def birthplace(self, table: TableRef) -> tuple[str, ...]:
        """Return the namespace that a new table of this dataset is made in: the slugs of its catalog and schema."""
        return table.slugs[:2]

    def give_birth(self, table: TableRef) -> Table:
        """Make a dataset's table, empty, or return the one that an aborted first write left.

        Its first snapshot is an empty root: PyIceberg can't write to a branch of a table without one.
        """
        return settle(f"dataset {table.name}", lambda: self._birth(table))

    def _birth(self, table: TableRef) -> Table:
        namespace = self.birthplace(table)
        made = self._find(table, namespace)
        if made is None:
            made = self._create(table, namespace)
        self._check_owner(table, made)
        if made.current_snapshot() is None:
            branches.commit_root(made, {DATASET_PROPERTY: str(table.uid), VERSION_PROPERTY: "0"})
        return made

    def _create(self, table: TableRef, namespace: tuple[str, ...]) -> Table:
        for depth in range(1, len(namespace) + 1):
            self.catalog.create_namespace_if_not_exists(namespace[:depth])
        schema = physical_schema(table)
        return self.catalog.create_table(
            (*namespace, table.slugs[2]),
            schema=schema,
            partition_spec=partition_spec(table.partition_by, table.schema, schema.column_names),
            location=self.location(table),
            properties={**_PROPERTIES, DATASET_PROPERTY: str(table.uid)},
        )

    def location(self, table: TableRef) -> str:
        """Return where a new table of this dataset keeps its files: a directory that is no other one's, ever."""
        return f"{warehouse_uri(self._settings)}/{'/'.join(table.slugs)}-{table.uid.hex[:12]}"

    def drop(self, found: Table) -> None:
        """Take a table out of the catalog; its files stay. Nothing happens if it is gone already.

        Raises:
            CatalogError: the catalog failed; the table may be gone, or go later.
        """
        with catalog_errors(f"table {'.'.join(found.name())}"), contextlib.suppress(NoSuchTableError):
            self.catalog.drop_table(found.name())

    def _find(self, table: TableRef, namespace: tuple[str, ...]) -> Table | None:
        identifier = (*namespace, table.slugs[2])
        with catalog_errors(f"dataset {table.name}"):
            try:
                try:
                    return self.catalog.load_table(identifier)
                except FileNotFoundError:
                    # Between the catalog's answer and our look, its metadata file got too old and was deleted.
                    return self.catalog.load_table(identifier)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None

    @staticmethod
    def _check_owner(table: TableRef, found: Table) -> None:
        owner = found.properties.get(DATASET_PROPERTY)
        if owner != str(table.uid):
            raise CatalogError(
                f"the Iceberg table {'.'.join(found.name())} belongs to {owner or 'somebody else'}, not to dataset "
                f"{table.name}",
                safe="it was not touched",
                next_step="rename that table, or the dataset",
                dataset=table.name,
            )


def physical_schema(table: TableRef) -> Schema:
    """Return the schema of the physical table: the business columns, then the identity columns.

    PyIceberg numbers the fields of a new table level by level, so the business columns get the ids 1 to n, which are
    those that the control plane gave them.
    """
    unnumbered = Catalog._convert_schema_if_needed(with_identity(arrow_schema(table.schema)))
    return assign_fresh_schema_ids(unnumbered)


def warehouse_uri(settings: StorageSettings) -> str:
    """Return the warehouse as the URI that stands in table metadata."""
    return f"file://{settings.warehouse}"
