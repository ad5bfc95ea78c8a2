"""Parquet files: types come from the file's own schema, batches are streamed, and no value changes on the way."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from lakeward.errors import SchemaError
from lakeward.sources.file_format import check_names
from lakeward.sources.formats.replaced_file import replaced_file
from lakeward.sources.formats.typed_file import DAMAGE, Contents, TypedFile
from lakeward.types.nearest import logical_type

__all__ = ["ParquetFile", "write_parquet"]

_BATCH_ROWS = 65_536


class ParquetFile(TypedFile):
    """Apache Parquet, with the types of its schema; a scan reads the file's footer alone."""

    name = "parquet"
    suffixes = (".parquet",)

    @contextmanager
    def _opened(self) -> Iterator[Contents]:
        with self._bytes() as source:
            try:
                file = pq.ParquetFile(source, page_checksum_verification=True)
            except DAMAGE as error:
                raise self._damaged("is not a Parquet file, or a truncated one", error) from error
            yield Contents(file.schema_arrow, file.iter_batches(batch_size=_BATCH_ROWS), file.metadata.num_rows)


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
