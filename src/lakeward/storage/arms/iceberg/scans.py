"""Plans the reading of a snapshot: DuckDB SQL over its data files, columns found by field id, deleted rows left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyiceberg.expressions import (
    AlwaysTrue,
    And,
    BooleanExpression,
    EqualTo,
    GreaterThan,
    GreaterThanOrEqual,
    LessThan,
    LessThanOrEqual,
)
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Snapshot

from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg.deletes import FILE_SHIFT, deleted_places
from lakeward.storage.arms.iceberg.file_names import file_schema, type_in_files, under_table_names
from lakeward.storage.arms.iceberg.known_files import KnownFiles
from lakeward.storage.arms.iceberg.stores import Store, store_of
from lakeward.storage.arms.iceberg.unnumbered import Unnumbered, lacks_identity
from lakeward.storage.filters import quote_identifier
from lakeward.types.logical import LogicalType, StructType
from lakeward.types.schema import CREATED_AT, FLOAT_KINDS, IDENTITY_COLUMNS, VERSION, Schema
from lakeward.types.table import duckdb_type

DELETED_ROWS = "deleted_rows"

PLACE = f"((CAST(t.file_index AS BIGINT) << {FILE_SHIFT}) | t.file_row_number)"
"""DuckDB's expression of a row's place among several files, see `deletes`."""

_KNOWN = KnownFiles()

_COMPARISONS: dict[str, Callable[..., BooleanExpression]] = {
    "=": EqualTo,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "<": LessThan,
    "<=": LessThanOrEqual,
}


@dataclass(frozen=True)
class FileScan:
    """A DuckDB query over data files in a store, and the Arrow tables that it reads besides."""

    sql: str
    store: Store
    tables: dict[str, pa.Table]
    tasks: tuple[FileScanTask, ...] = ()
    """The data files that it reads, in the order of their numbers."""


def plan(
    table: Table, snapshot_id: int, schema: Schema, columns: set[str], scan: Scan, deletes: str = DELETED_ROWS
) -> FileScan | None:
    """Plan a scan; None if no file can hold a row that is wanted.

    Args:
        table: the loaded table.
        snapshot_id: which snapshot.
        schema: the dataset's columns.
        columns: business and identity columns to read.
        scan: its `since` and `where` leave out files whose bounds exclude them; rows are not filtered here.
        deletes: what to call the table of deleted rows, if there are any.
    """
    # Rows without identity columns are all of one version.
    since = None if lacks_identity(as_written(table, snapshot_id).schema()) else scan.since
    table, tasks = files_of(table, snapshot_id, _file_filter(scan, since))
    return live_rows(table, tasks, schema, columns, deletes=deletes) if tasks else None


def files_of(
    table: Table, snapshot_id: int, wanted: BooleanExpression | None = None
) -> tuple[Table, list[FileScanTask]]:
    """Return the table under the columns of a snapshot, and its data files with the delete files that apply to them.

    Args:
        table: the loaded table.
        snapshot_id: which snapshot.
        wanted: files whose bounds exclude it are left out.
    """
    table = as_written(table, snapshot_id)
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is not None and lacks_identity(table.schema()):
        table = Unnumbered.of(table, snapshot)
    if wanted is not None and wanted != AlwaysTrue():
        return table, list(table.scan(row_filter=wanted, snapshot_id=snapshot_id).plan_files())
    known = (table.metadata.table_uuid, snapshot_id)
    return table, list(_KNOWN.of(known, lambda: list(table.scan(snapshot_id=snapshot_id).plan_files())))


def live_rows(
    table: Table,
    tasks: Sequence[FileScanTask],
    schema: Schema,
    columns: Iterable[str],
    *,
    places: bool = False,
    deletes: str = DELETED_ROWS,
) -> FileScan:
    """Return the query of the rows of data files that are not deleted: the one place that says which those are.

    Args:
        table: the table under the columns that the files are to be read with, see `files_of`.
        tasks: the files, at least one.
        schema: the dataset's columns, under the names that the result is to have.
        columns: which of them to read, and which identity columns.
        places: also yield `file`, the position of a row's data file among the result's `tasks`, and `row`, its position
            in that.
        deletes: what to call the table of deleted rows, if there are any.
    """
    clean = [task for task in tasks if not task.delete_files]
    dirty = [task for task in tasks if task.delete_files]
    deleted = deleted_places(table, dirty)
    if not len(deleted):
        return all_rows(table, tasks, schema, columns, places=places)
    # Only the rows of files that have deleted ones are looked up. Those files come first, so that the places of deleted
    # rows count files as the result does.
    join = f"ANTI JOIN {quote_identifier(deletes)} AS d ON d.place = {PLACE}"
    parts = [_rows_of(table, dirty, schema, columns, 0 if places else None, join)]
    if clean:
        parts.append(_rows_of(table, clean, schema, columns, len(dirty) if places else None))
    return FileScan(
        " UNION ALL ".join(parts), store_of(table), {deletes: pa.table({"place": deleted})}, (*dirty, *clean)
    )


def all_rows(
    table: Table, tasks: Sequence[FileScanTask], schema: Schema, columns: Iterable[str], *, places: bool = False
) -> FileScan:
    """Return the query of all rows of data files, deleted ones too; for the arguments see `live_rows`."""
    return FileScan(_rows_of(table, tasks, schema, columns, 0 if places else None), store_of(table), {}, tuple(tasks))


def _rows_of(
    table: Table,
    tasks: Sequence[FileScanTask],
    schema: Schema,
    columns: Iterable[str],
    first: int | None,
    join: str = "",
) -> str:
    numbers = [] if first is None else [f"CAST(t.file_index AS BIGINT) + {first} AS file", "t.file_row_number AS row"]
    files = [task.file.file_path for task in tasks]
    rows = sum(task.file.record_count for task in tasks)
    return select_rows(table, schema, columns, files, join, numbers, rows)


def select_rows(
    table: Table,
    schema: Schema,
    columns: Iterable[str],
    files: Sequence[str],
    joins: str = "",
    more: Sequence[str] = (),
    rows: int | None = None,
) -> str:
    """Return a DuckDB query over data files.

    Args:
        table: the table, under the columns of the snapshot.
        schema: the dataset's columns.
        columns: business and identity columns to read.
        files: the locations of at least one.
        joins: what the files' rows, `t`, are joined with; `t` then has `filename` and `file_row_number`.
        more: expressions to select besides.
        rows: how many the files have; DuckDB orders joins by it, and without it guesses from the files' sizes.
    """
    written, wanted = file_schema(table.schema()), set(columns)
    names = [name for name in [*schema.names, *IDENTITY_COLUMNS] if name in wanted]
    made: list[str] = []
    if isinstance(table, Unnumbered):
        made = [name for name in names if name in IDENTITY_COLUMNS]
        # DuckDB wants a column to read, also where only places are asked for.
        names = [name for name in names if name not in made] or list(schema.names[:1])
        more = [*(f"{table.expression(name, files)} AS {name}" for name in made), *more]
    read = [_column(table, schema, name, written) for name in names]
    store = store_of(table)
    paths = ", ".join(_literal(store.duckdb_path(path)) for path in files)
    # Directories like `region=EU` say nothing that the files do not.
    options = f"schema = MAP {{{', '.join(column.entry for column in read)}}}, hive_partitioning = false"
    options += ", filename = true, file_row_number = true" if joins or made else ""
    options += f", explicit_cardinality = {rows}" if rows else ""
    select = ", ".join([*(column.expression for column in read if column.name in wanted), *more])
    return f"SELECT {select} FROM read_parquet([{paths}], {options}) AS t {joins}"


def schema_of(table: Table, snapshot: Snapshot) -> IcebergSchema:
    """Return the columns that a snapshot was written with."""
    known = {schema.schema_id: schema for schema in table.metadata.schemas}
    current = table.schema()
    return current if snapshot.schema_id is None else known.get(snapshot.schema_id, current)


def as_written(table: Table, snapshot_id: int) -> Table:
    """Return the table under the columns of a snapshot: another engine may have renamed or dropped some since."""
    snapshot = table.metadata.snapshot_by_id(snapshot_id)
    if snapshot is None or schema_of(table, snapshot).schema_id == table.schema().schema_id:
        return table
    metadata = table.metadata.model_copy(update={"current_schema_id": schema_of(table, snapshot).schema_id})
    return Table(table.name(), metadata, table.metadata_location, table.io, table.catalog, table.config)


def _file_filter(scan: Scan, since: int | None) -> BooleanExpression:
    parts: list[BooleanExpression] = [
        _COMPARISONS[conjunct.operator](conjunct.column, conjunct.value)
        for conjunct in (scan.where.conjuncts if scan.where else ())
    ]
    if since is not None:
        parts.append(_COMPARISONS[">"](VERSION, since))
    result: BooleanExpression = AlwaysTrue()
    for part in parts:
        result = And(result, part)
    return result


@dataclass(frozen=True)
class _Column:
    """How a column is read: its entry in DuckDB's map from field ids, and what makes the table's column of that."""

    name: str
    entry: str
    expression: str


def _column(table: Table, schema: Schema, name: str, written: IcebergSchema) -> _Column:
    if name in IDENTITY_COLUMNS:
        field_id = next(field.field_id for field in table.schema().fields if field.name == name)
        kind, expression = "TIMESTAMPTZ" if name == CREATED_AT else "BIGINT", f"t.c{field_id}"
    else:
        column = schema.column(name)
        field_id = column.field_id
        in_files = type_in_files(column.type, written.find_type(field_id))
        kind = duckdb_type(in_files)
        expression = _unpruned(under_table_names(f"t.c{field_id}", column.type, in_files), column.type)
    # Under names of ours, so that no column is taken for DuckDB's own `filename` or `file_row_number`.
    # A file without the field reads as null.
    entry = f"{field_id}: {{name: 'c{field_id}', type: {_literal(kind)}, default_value: NULL}}"
    return _Column(name, entry, f"{expression} AS {quote_identifier(name)}")


def _unpruned(expression: str, type_: LogicalType) -> str:
    """Keep DuckDB from leaving out rows by the bounds of a floating-point number in Parquet.

    They say nothing of NaN, which DuckDB takes for the greatest number: of a file that holds 1.5 and NaN it would yield
    nothing that is `> 2` or `<> 1.5`. Through a CASE it does not look at them.
    """
    return f"CASE WHEN {expression} IS NULL THEN NULL ELSE {expression} END" if _has_floats(type_) else expression


def _has_floats(type_: LogicalType) -> bool:
    if isinstance(type_, StructType):
        return any(_has_floats(field.type) for field in type_.fields)
    return type_.kind in FLOAT_KINDS


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
