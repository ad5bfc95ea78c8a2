"""Parquet files: types come from the file's own schema, batches are streamed, and no value changes on the way."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakeward.errors import ColumnMismatch, SchemaError, SourceFileError, ValueRefused
from lakeward.sources.connector import FileConnector, FileProfile, check_columns, check_names
from lakeward.sources.connectors.replaced_file import replaced_file
from lakeward.types.arrow_values import exact
from lakeward.types.logical import LogicalType, parse_type, simple
from lakeward.types.nearest import logical_type
from lakeward.types.refusal import Origin
from lakeward.types.table import arrow_type

__all__ = ["ParquetFile", "write_parquet"]

_BATCH_ROWS = 65_536
# What a damaged file makes PyArrow raise, by where the damage is.
_DAMAGE = (pa.ArrowException, OSError, ValueError)


class ParquetFile(FileConnector):
    """Apache Parquet, with the types of its schema.

    Args:
        path: the file.
    """

    name = "parquet"
    suffixes = (".parquet",)

    def __init__(self, path: Path) -> None:
        self.path = path

    def scan(self) -> FileProfile:
        """Return the types and the row count that the file's footer states; pages are not read.

        Raises:
            SourceFileError: not a Parquet file, or a truncated one; a column has a type that no dataset can hold.
        """
        with self._opened() as file:
            types = self._types(file)
            return FileProfile({name: str(type_) for name, type_ in types.items()}, file.metadata.num_rows)

    def read(self, types: Mapping[str, str]) -> pa.RecordBatchReader:
        """Stream the rows as batches of the given types.

        A column may be read as another type where no value changes, for instance a decimal without fraction as long;
        `lakeward.types.arrow_values.exact` has the list.

        Args:
            types: the logical type text of every column, in the order that the batches shall have.

        Raises:
            ColumnMismatch: `types` does not name exactly the file's columns.
            SchemaError: a type text is wrong.
            SourceFileError: the file is damaged. While the batches are read, also: a value does not fit, with row
                (from 1) and column, or no value of the column could.
        """
        logical = {name: parse_type(text) for name, text in types.items()}
        with self._opened() as file:
            check_columns(list(self._types(file)), types, self.path)
        schema = pa.schema([pa.field(name, arrow_type(type_)) for name, type_ in logical.items()])
        return pa.RecordBatchReader.from_batches(schema, self._batches(logical, schema))

    def _batches(self, types: Mapping[str, LogicalType], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        rows = 0
        with self._opened() as file:
            stated = file.metadata.num_rows
            batches = file.iter_batches(batch_size=_BATCH_ROWS)
            while True:
                try:
                    batch = next(batches, None)
                    if batch is None:
                        break
                    # Text that is not UTF-8 passes the reader, and would fail in some later tool.
                    batch.validate(full=True)
                except _DAMAGE as error:
                    raise self._damaged(f"is damaged behind row {rows}", error) from error
                arrays = [self._converted(batch.column(name), name, type_, rows) for name, type_ in types.items()]
                rows += batch.num_rows
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)
        if rows != stated:
            raise SourceFileError(
                f"{self.path}: states {stated} rows and holds {rows}", path=str(self.path), stated=stated, found=rows
            )

    def _converted(self, values: pa.Array, name: str, type_: LogicalType, rows_before: int) -> pa.Array:
        origin = Origin(str(self.path), rows_before + 1, lambda index: {})
        try:
            return exact(values, type_, origin.column(name))
        except (ValueRefused, ColumnMismatch) as error:
            row = error.fields.get("row")
            value = error.fields.get("value")
            where = f"row {row}, " if row is not None else ""
            what = f"{value} {error.fields['reason']}" if row is not None else f"{values.type} can't be read as {type_}"
            raise SourceFileError(
                f"{self.path}: {where}column {name!r}: {what}",
                next_step="declare the column with a type that holds the file's values",
                path=str(self.path),
                row=row,
                column=name,
                value=value,
            ) from error

    @contextmanager
    def _opened(self) -> Iterator[pq.ParquetFile]:
        try:
            file = pq.ParquetFile(self.path, page_checksum_verification=True)
        except _DAMAGE as error:
            raise self._damaged("is not a Parquet file, or a truncated one", error) from error
        with file:
            yield file

    def _types(self, file: pq.ParquetFile) -> dict[str, LogicalType]:
        schema = file.schema_arrow
        check_names(schema.names, self.path)
        types = {}
        for field in schema:
            try:
                # Of a column without values nothing is known.
                types[field.name] = simple("string") if pa.types.is_null(field.type) else logical_type(field.type)
            except SchemaError as error:
                raise SourceFileError(
                    f"{self.path}: column {field.name!r} is {field.type}, which no dataset can hold",
                    next_step="leave the column out, or write it as another type",
                    path=str(self.path),
                    column=field.name,
                ) from error
        return types

    def _damaged(self, what: str, error: BaseException) -> SourceFileError:
        if isinstance(error, OSError) and error.errno is not None and error.strerror:
            what = "can't be read"
        return SourceFileError(f"{self.path}: {what}: {error}", path=str(self.path))


def write_parquet(reader: pa.RecordBatchReader, path: Path) -> int:
    """Write the rows of a stream to a Parquet file (zstd) and return their number.

    The file appears under its name when it is complete and on disk; until then, and after an error, what was there
    before stays. Memory is bounded by a row group.

    Raises:
        SourceFileError: two columns could not be told apart when the file is read back.
        SchemaError: Parquet has no form for a column's type.
        StorageFull: no space left.
        UsageError: the path can't be written.
    """
    check_names(reader.schema.names, path)
    for field in reader.schema:
        try:
            logical_type(field.type)
        except SchemaError as error:
            raise SchemaError(
                f"column {field.name!r} is {field.type}, which is not exported", column=field.name
            ) from error
    rows = 0
    with replaced_file(path) as file:
        with pq.ParquetWriter(file, reader.schema, compression="zstd", write_page_checksum=True) as writer:
            for batch in reader:
                writer.write_batch(batch)
                rows += batch.num_rows
    return rows
