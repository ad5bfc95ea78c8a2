"""Finds the files of the versions that are read: of one, for a stream, or of several, for an engine that opens them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace

from pyiceberg.table import Table

from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion
from lakeward.errors import CatalogError, StorageError, UnknownVersion
from lakeward.in_place import InPlace
from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg.delta import differing
from lakeward.storage.arms.iceberg.scans import DELETED_ROWS, FileScan, plan
from lakeward.storage.arms.iceberg.tables import Tables
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.duck import SOURCE
from lakeward.storage.filters import quote_identifier, quote_list
from lakeward.storage.scans import KEYS, with_keys
from lakeward.storage.sides import Side
from lakeward.storage.table import TableRef
from lakeward.types.schema import IDENTITY_COLUMNS, VERSION


class Reading:
    """Plans reads of the Iceberg arm.

    Args:
        arm: its name.
        tables: where the tables are.
        ledger: says whether a version that is not there has expired.
    """

    def __init__(self, arm: str, tables: Tables, ledger: Ledger) -> None:
        self._arm = arm
        self._tables = tables
        self._ledger = ledger

    def selected(self, table: TableRef, version: ArmVersion, scan: Scan) -> FileScan | None:
        """Return the query of the rows and columns that are wanted, None if there are none.

        Raises:
            UnknownVersion, CatalogError: the version's snapshot is not there.
        """
        return self._selected(self._tables.load(table), table, version, scan, DELETED_ROWS)

    def in_place(self, reads: Sequence[tuple[TableRef, ArmVersion, Scan]]) -> list[InPlace | None]:
        """Return the query of each read and its files, None if the store does not let others open them.

        Raises:
            UnknownVersion, CatalogError: a version's snapshot is not there.
        """
        tables = self._tables.load_each([table for table, _, _ in reads])
        return [self._in_place(loaded, *each) for loaded, each in zip(tables, reads, strict=True)]

    def _in_place(self, loaded: Table, table: TableRef, version: ArmVersion, scan: Scan) -> InPlace | None:
        files = self._selected(loaded, table, version, scan, f"{DELETED_ROWS}_{uuid.uuid4().hex}")
        if files is None:
            return None
        paths = [files.store.in_place(task.file.file_path) for task in files.tasks]
        return InPlace(files.sql, tuple(filter(None, paths)), files.tables) if all(paths) else None

    def _selected(
        self, loaded: Table, table: TableRef, version: ArmVersion, scan: Scan, deletes: str
    ) -> FileScan | None:
        names = [*scan.columns, *(IDENTITY_COLUMNS if scan.identity else ())]
        reads = {*names, *(scan.where.columns if scan.where else ()), *((VERSION,) if scan.since is not None else ())}
        reads |= {*(table.schema.primary_key if scan.keys is not None else ())}
        self._check(loaded, table, version)
        with catalog_errors(f"dataset {table.name}"):
            files = plan(loaded, version.snapshot_id or 0, table.schema, reads, scan, deletes)
        if files is None:
            return None
        conditions = [f"{VERSION} > {scan.since}"] if scan.since is not None else []
        conditions += with_keys(scan, table.schema)
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        sql = f"SELECT {quote_list(names)} FROM ({files.sql}) AS {quote_identifier(SOURCE)}{where}"
        tables = files.tables if scan.keys is None else {**files.tables, KEYS: scan.keys}
        return replace(files, sql=sql, tables=tables)

    def changes(self, table: TableRef, old: ArmVersion, new: ArmVersion) -> tuple[Side, Side]:
        """Return the rows of two versions but those of files that both have, with the same rows deleted.

        Raises:
            UnknownVersion, CatalogError: a version's snapshot is not there.
        """
        loaded = self._tables.load(table)
        for version in (old, new):
            self._check(loaded, table, version)
        with catalog_errors(f"dataset {table.name}"):
            return differing(loaded, table.schema, old.snapshot_id or 0, new.snapshot_id or 0)

    def _check(self, loaded: Table, table: TableRef, version: ArmVersion) -> None:
        """Refuse a reader that was sent to a snapshot which is not in the table."""
        if loaded.metadata.snapshot_by_id(version.snapshot_id or 0) is None:
            raise self._gone(table, version)

    def _gone(self, table: TableRef, version: ArmVersion) -> StorageError | UnknownVersion:
        if self._ledger.arm_version(table.dataset_id, self._arm, version.version) is None:
            return UnknownVersion(
                f"version {version.version} of dataset {table.name} expired in this moment",
                next_step="read a newer version, or keep more of them: retention.versions",
                dataset=table.name,
                version=version.version,
            )
        return CatalogError(
            f"dataset {table.name}: the snapshot {version.snapshot_id} of version {version.version} is not in its "
            "Iceberg table",
            safe="the ledger still has every committed version",
            next_step="restore the catalog's entry, or read from the other arm if it is current",
            dataset=table.name,
            version=version.version,
        )
