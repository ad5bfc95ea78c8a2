"""Looks at tables that other engines have written, before one comes under a dataset. Changes nothing."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import replace

from pyiceberg import types as iceberg
from pyiceberg.exceptions import NoSuchNamespaceError
from pyiceberg.table import Table

from lakeward.control.identifiers import TableIdentifier
from lakeward.errors import ColumnMismatch, DataError, UnknownObject, UsageError
from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg.field_ids import check_field_ids
from lakeward.storage.arms.iceberg.formats import NEWEST_FORMAT
from lakeward.storage.arms.iceberg.scans import plan
from lakeward.storage.arms.iceberg.stores import store_of
from lakeward.storage.arms.iceberg.tables import DATASET_PROPERTY, Tables
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.duck import Duck
from lakeward.storage.existing import ExistingTable
from lakeward.storage.filters import quote_identifier
from lakeward.storage.table import TableRef
from lakeward.types.logical import LogicalType, decimal, list_of, simple, struct_of
from lakeward.types.schema import IDENTITY_COLUMNS, Column, Schema

_KINDS: dict[type[iceberg.IcebergType], str] = {
    iceberg.BooleanType: "boolean",
    iceberg.IntegerType: "int",
    iceberg.LongType: "long",
    iceberg.FloatType: "float",
    iceberg.DoubleType: "double",
    iceberg.StringType: "string",
    iceberg.BinaryType: "binary",
    iceberg.UUIDType: "uuid",
    iceberg.DateType: "date",
    iceberg.TimeType: "time",
    iceberg.TimestampType: "timestamp",
    iceberg.TimestamptzType: "timestamptz",
}

SHOWN = 3
"""So many keys that come more than once are named."""


class ExistingTables:
    """Tables of the workspace's catalog, whosever they are.

    Args:
        tables: know the catalog and the warehouse.
        duck: reads rows.
    """

    def __init__(self, tables: Tables, duck: Duck) -> None:
        self._tables = tables
        self._duck = duck

    def find(self, identifier: TableIdentifier, roots: Sequence[str]) -> ExistingTable:
        """Return what there is of that name.

        Args:
            identifier: its name.
            roots: addresses below which its files may be, besides the warehouse.

        Raises:
            UnknownObject: there is none, with the nearest names.
            UsageError: it is of another format version, or its files are somewhere else.
            ColumnMismatch: a column has a type that a dataset can't have.
        """
        with catalog_errors(f"table {identifier}"):
            loaded = self._tables.named(identifier, f"table {identifier}")
            if loaded is None:
                raise self._unknown(identifier)
            self._check_format(loaded, identifier)
            inside = self._check_place(loaded, identifier, roots)
            head = loaded.current_snapshot()
            total = head.summary.get("total-records") if head is not None and head.summary is not None else None
            return ExistingTable(
                identifier=identifier,
                schema=_schema(loaded, identifier),
                snapshot_id=head.snapshot_id if head is not None else None,
                rows=0 if head is None else int(total) if total is not None else None,
                location=loaded.location(),
                inside=inside,
                owner=loaded.properties.get(DATASET_PROPERTY),
                partitions=", ".join(f"{field.transform}({field.name})" for field in loaded.spec().fields),
            )

    def check_rows(self, table: TableRef, snapshot_id: int | None) -> int:
        """Read the rows that a dataset would have, and return how many there are.

        Raises:
            DataError: a key column is null in some, several have one key, or they can't be read, as those in files
                without field ids.
        """
        loaded = self._tables.named(table.identifier, f"table {table.identifier}")
        if loaded is None or snapshot_id is None:
            return 0
        names = table.schema.primary_key or table.schema.names[:1]
        try:
            with catalog_errors(f"table {table.identifier}"):
                files = plan(loaded, snapshot_id, table.schema, set(names), Scan(names))
        except ValueError as error:
            raise DataError(
                f"the Iceberg table {table.identifier} can't be read: {error}",
                safe="nothing was changed",
                next_step="have the engine that writes it compact it: its delete files are of a kind not read here",
            ) from error
        if files is None:
            return 0
        with catalog_errors(f"table {table.identifier}"):
            check_field_ids((task.file for task in files.tasks), files.store, f"the Iceberg table {table.identifier}")
        with self._duck.session() as connection:
            for name, rows in files.tables.items():
                connection.register(name, rows)
            (count,) = connection.execute(f"SELECT count(*) FROM ({files.sql})").fetchone() or (0,)
            if not table.schema.primary_key:
                return int(count)
            keys = [quote_identifier(name) for name in names]
            for name, key in zip(names, keys, strict=True):
                null = f"SELECT count(*) FROM ({files.sql}) WHERE {key} IS NULL"
                (nulls,) = connection.execute(null).fetchone() or (0,)
                if nulls:
                    raise _bad_key(table, f"column {name!r} is null in {nulls:,} of {count:,} rows")
            found = connection.execute(
                f"SELECT {', '.join(keys)}, count(*) FROM ({files.sql}) GROUP BY ALL HAVING count(*) > 1 "
                f"ORDER BY ALL LIMIT {SHOWN}"
            ).fetchall()
        if found:
            shown = "; ".join(f"({', '.join(map(repr, key))}) {times} times" for *key, times in found)
            raise _bad_key(table, f"({', '.join(names)}) is not unique: {shown}")
        return int(count)

    def _unknown(self, identifier: TableIdentifier) -> UnknownObject:
        names: list[str] = []
        for namespace in dict.fromkeys([identifier.namespace, *self._tables.catalog.list_namespaces()]):
            try:
                names += [str(TableIdentifier.of(parts)) for parts in self._tables.catalog.list_tables(namespace)]
            except NoSuchNamespaceError:
                continue
        near = difflib.get_close_matches(str(identifier), names, n=3)
        return UnknownObject(
            f"there is no table {identifier} in the Iceberg catalog",
            safe="nothing was changed",
            next_step=f"did you mean {', '.join(near)}?" if near else "lakeward doctor",
            table=str(identifier),
        )

    @staticmethod
    def _check_format(loaded: Table, identifier: TableIdentifier) -> None:
        version = loaded.format_version
        if version != NEWEST_FORMAT:
            way_out = "have the engine that writes it make it one of version 2"
            if version > NEWEST_FORMAT:
                way_out = "no table gets an older version: have that engine copy it into a new one of version 2"
            raise UsageError(
                f"the Iceberg table {identifier} has format version {version}; datasets are kept in {NEWEST_FORMAT}",
                safe="nothing was changed",
                next_step=way_out,
                table=str(identifier),
            )

    def _check_place(self, loaded: Table, identifier: TableIdentifier, roots: Sequence[str]) -> bool:
        """Refuse files in places that nobody allowed; say whether they are in the warehouse."""
        store = store_of(loaded)
        for place in (loaded.location(), loaded.metadata_location):
            allowed = (self._tables.warehouse, *roots)
            if not any(store.is_below(place, root) for root in allowed):
                raise UsageError(
                    f"the files of the Iceberg table {identifier} are at {place}, outside of the warehouse",
                    safe="nothing was changed, and nothing there was read",
                    next_step="if you know that place, allow it: `--allow ADDRESS`",
                    table=str(identifier),
                    location=place,
                )
        return store.is_below(loaded.location(), self._tables.warehouse)


def _bad_key(table: TableRef, why: str) -> DataError:
    return DataError(
        f"the Iceberg table {table.identifier} can't have that key: {why}",
        safe="nothing was changed",
        next_step="choose another key, or none: a dataset without one takes append and replace",
        table=str(table.identifier),
    )


def _schema(loaded: Table, identifier: TableIdentifier) -> Schema:
    """Return a table's columns under their own field ids; without those that we have added, if it is of a dataset."""
    ours = IDENTITY_COLUMNS if DATASET_PROPERTY in loaded.properties else ()
    fields = [field for field in loaded.schema().fields if field.name not in ours]
    types = {field.name: _logical(field.field_type, field.name, identifier) for field in fields}
    declared = Schema.declare(types, dataset=f"of {identifier}")
    ids = {field.name: field.field_id for field in fields}
    return replace(declared, columns=tuple(Column(each.name, each.type, ids[each.name]) for each in declared.columns))


def _logical(kind: iceberg.IcebergType, column: str, identifier: TableIdentifier) -> LogicalType:
    if isinstance(kind, iceberg.DecimalType):
        return decimal(kind.precision, kind.scale)
    if isinstance(kind, iceberg.ListType):
        return list_of(_logical(kind.element_type, column, identifier))
    if isinstance(kind, iceberg.StructType):
        return struct_of({each.name: _logical(each.field_type, column, identifier) for each in kind.fields})
    if type(kind) in _KINDS:
        return simple(_KINDS[type(kind)])
    raise ColumnMismatch(
        f"column {column!r} of the Iceberg table {identifier} is a {kind}, which a dataset can't have",
        safe="nothing was changed",
        next_step="drop or change the column with the engine that writes it",
        table=str(identifier),
        column=column,
    )
