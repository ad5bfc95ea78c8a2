"""Plans the reading of a snapshot: DuckDB SQL over its data files, columns found by field id, deleted rows left out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import urlparse

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
from pyiceberg.io.pyarrow import _read_all_delete_files
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.table.snapshots import Snapshot

from lakeward.errors import SettingsError
from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg.file_names import file_schema, type_in_files, under_table_names
from lakeward.storage.filters import quote_identifier
from lakeward.types.schema import CREATED_AT, IDENTITY_COLUMNS, VERSION, Schema
from lakeward.types.table import duckdb_type

_COMPARISONS: dict[str, Callable[..., BooleanExpression]] = {
    "=": EqualTo,
    ">": GreaterThan,
    ">=": GreaterThanOrEqual,
    "<": LessThan,
    "<=": LessThanOrEqual,
}


@dataclass(frozen=True)
class FileScan:
    """A DuckDB query over data files, and the Arrow tables that it reads besides."""

    sql: str
    tables: dict[str, pa.Table]


def plan(
    table: Table, snapshot_id: int, schema: Schema, columns: set[str], scan: Scan, deletes: str = "deleted_rows"
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
    table = as_written(table, snapshot_id)
    tasks = list(table.scan(row_filter=_file_filter(scan), snapshot_id=snapshot_id).plan_files())
    if not tasks:
        return None
    files = [local_path(task.file.file_path) for task in tasks]
    deleted = deleted_rows(table, tasks)
    if deleted is None:
        return FileScan(select_rows(table, schema, columns, files), {})
    return FileScan(select_rows(table, schema, columns, files, without(deletes)), {deletes: deleted})


def select_rows(
    table: Table,
    schema: Schema,
    columns: Iterable[str],
    files: Sequence[str],
    joins: str = "",
    more: Sequence[str] = (),
) -> str:
    """Return a DuckDB query over data files.

    Args:
        table: the table, under the columns of the snapshot.
        schema: the dataset's columns.
        columns: business and identity columns to read.
        files: local paths; at least one.
        joins: what the files' rows, `t`, are joined with; `t` then has `filename` and `file_row_number`.
        more: expressions to select besides.
    """
    written, wanted = file_schema(table.schema()), set(columns)
    read = [_column(table, schema, name, written) for name in [*schema.names, *IDENTITY_COLUMNS] if name in wanted]
    paths = ", ".join(_literal(_glob_free(path)) for path in files)
    options = f"schema = MAP {{{', '.join(column.entry for column in read)}}}"
    options += ", filename = true, file_row_number = true" if joins else ""
    select = ", ".join([*(column.expression for column in read), *more])
    return f"SELECT {select} FROM read_parquet([{paths}], {options}) AS t {joins}"


def without(deletes: str) -> str:
    """Return the join that leaves out the rows which a table of `deleted_rows` names."""
    return f"ANTI JOIN {quote_identifier(deletes)} AS d ON d.file = t.filename AND d.position = t.file_row_number"


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


def local_path(uri: str) -> str:
    """Return the path of a data file on this machine.

    Raises:
        SettingsError: it is in an object store, which this arm does not read.
    """
    parsed = urlparse(uri)
    if parsed.scheme not in ("", "file"):
        raise SettingsError(
            f"the data file {uri} is in a store of kind {parsed.scheme!r}; the warehouse must be a local directory",
            next_step="open the workspace with a local warehouse",
        )
    return uri.removeprefix("file://")


def _file_filter(scan: Scan) -> BooleanExpression:
    parts: list[BooleanExpression] = [
        _COMPARISONS[conjunct.operator](conjunct.column, conjunct.value)
        for conjunct in (scan.where.conjuncts if scan.where else ())
    ]
    if scan.since is not None:
        parts.append(_COMPARISONS[">"](VERSION, scan.since))
    result: BooleanExpression = AlwaysTrue()
    for part in parts:
        result = And(result, part)
    return result


@dataclass(frozen=True)
class _Column:
    """How a column is read: its entry in DuckDB's map from field ids, and what makes the table's column of that."""

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
        expression = under_table_names(f"t.c{field_id}", column.type, in_files)
    # Under names of ours, so that no column is taken for DuckDB's own `filename` or `file_row_number`.
    # A file without the field reads as null.
    entry = f"{field_id}: {{name: 'c{field_id}', type: {_literal(kind)}, default_value: NULL}}"
    return _Column(entry, f"{expression} AS {quote_identifier(name)}")


def deleted_rows(table: Table, tasks: Iterable[FileScanTask]) -> pa.Table | None:
    """Return the local path and position of every deleted row (`file`, `position`), or None if there are none."""
    deletes = _read_all_delete_files(table.io, tasks)
    if not deletes:
        return None
    files: list[pa.Array] = []
    positions: list[pa.Array] = []
    for path, arrays in deletes.items():
        chunks = [chunk.cast(pa.int64()) for array in arrays for chunk in array.chunks]
        files += [pa.repeat(pa.scalar(local_path(path), pa.string()), len(chunk)) for chunk in chunks]
        positions += chunks
    return pa.table({"file": pa.chunked_array(files, pa.string()), "position": pa.chunked_array(positions, pa.int64())})


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _glob_free(path: str) -> str:
    """Keep DuckDB from reading a path's own brackets, stars and question marks as a pattern."""
    return "".join(f"[{character}]" if character in "[*?" else character for character in path)
