"""Writes a stream of batches to Parquet data files of bounded size, with the statistics that Iceberg keeps."""

from __future__ import annotations

import contextlib
import itertools
import logging
import uuid
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from lakeward.storage.arms.iceberg.file_names import file_schema
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.pump import prefetched
from lakeward.types.arrow_values import flattened
from lakeward.types.schema import ROW_ID, ROW_INDEX

log = logging.getLogger("lakeward.iceberg")

ROW_GROUP_ROWS = 262_144
"""Rows of one row group: what the writer holds in memory."""

SAMPLE_ROWS = 20_000
DICTIONARY_SHARE = 0.2
"""A column is dictionary-encoded if less than this share of a sample's values are distinct: else it costs double."""

_COUNTED = (ROW_INDEX, ROW_ID)
"""Columns of ascending integers: their differences are encoded, which makes them nearly free."""


class RollingWriter:
    """Writes data files one after the other; memory is bounded by one row group, not by the files or the dataset.

    PyIceberg's own append of a reader queues every file eagerly, so it is not used.

    Args:
        table: the table that the files are for.
        prefix: the beginning of the files' names.
        target_bytes: a file is closed when its rows have had this size in memory.
        what: names the dataset in errors.
    """

    def __init__(self, table: Table, prefix: str, target_bytes: int, what: str) -> None:
        self._table = table
        self._what = what
        self._prefix = prefix
        self._target_bytes = target_bytes
        self._schema = file_schema(table.schema())
        self._arrow = schema_to_pyarrow(self._schema, include_field_ids=True)
        self._numbers = itertools.count()
        self._unique = uuid.uuid4()
        self._options: dict[str, Any] | None = None
        self._writer: pq.ParquetWriter | None = None
        self._stream: OutputStream | None = None
        self._location = ""
        self._bytes = 0
        self._group: list[pa.RecordBatch] = []
        self._group_rows = 0
        self.files: list[DataFile] = []
        self.rows = 0

    def write_all(self, batches: Iterable[pa.RecordBatch], check: Callable[[], None]) -> None:
        """Write a whole stream, made by one thread and encoded by this one; on a failure delete its files.

        Args:
            batches: columns in the order of the table's schema. What it raises comes out unchanged.
            check: called before every row group; raises to stop.

        Raises:
            StorageFull, CatalogError: the files can't be written.
        """
        try:
            with prefetched(batches) as ready:
                for batch in ready:
                    self._add(batch)
                    if self._group_rows >= ROW_GROUP_ROWS:
                        check()
                        with catalog_errors(self._what):
                            self._flush()
            with catalog_errors(self._what):
                self._flush()
                self._close_file()
        except BaseException:
            self.delete()
            raise

    def delete(self) -> None:
        """Delete the files: no snapshot names them, and none has been asked to. What can't be deleted stays."""
        written = [file.file_path for file in self.files]
        if self._stream is not None:
            written.append(self._location)
            # On a full disk this fails as the write did, whose error is the one to see.
            with contextlib.suppress(OSError):
                self._stream.close()
            self._writer = self._stream = None
        for path in written:
            try:
                self._table.io.delete(path)
            except OSError as error:
                log.warning("%s: %s was not deleted; no snapshot names it: %s", self._what, path, error)
        self.files = []

    def _add(self, batch: pa.RecordBatch) -> None:
        columns = [_as_type(column, field.type) for column, field in zip(batch.columns, self._arrow, strict=True)]
        self._group.append(pa.RecordBatch.from_arrays(columns, schema=self._arrow))
        self._group_rows += batch.num_rows
        self.rows += batch.num_rows

    def _flush(self) -> None:
        if not self._group_rows:
            return
        group = pa.Table.from_batches(self._group)
        self._group, self._group_rows = [], 0
        if self._writer is None:
            self._open_file(group)
        assert self._writer is not None
        self._writer.write_table(group, row_group_size=group.num_rows)
        self._bytes += group.nbytes
        if self._bytes >= self._target_bytes:
            self._close_file()

    def _open_file(self, sample: pa.Table) -> None:
        if self._options is None:
            self._options = _writer_options(sample)
        name = f"{self._prefix}-{next(self._numbers):05d}-{self._unique}.parquet"
        self._location = self._table.location_provider().new_data_location(name)
        self._stream = self._table.io.new_output(self._location).create()
        self._writer = pq.ParquetWriter(self._stream, self._arrow, **self._options)
        self._bytes = 0

    def _close_file(self) -> None:
        if self._writer is None or self._stream is None:
            return
        self._writer.close()
        self._stream.close()
        metadata = self._writer.writer.metadata
        self._writer = self._stream = None
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=metadata,
            stats_columns=compute_statistics_plan(self._schema, self._table.properties),
            parquet_column_mapping=parquet_path_to_id_mapping(self._schema),
        )
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=self._location,
            file_format=FileFormat.PARQUET,
            partition=Record(),
            file_size_in_bytes=len(self._table.io.new_input(self._location)),
            sort_order_id=None,
            spec_id=self._table.metadata.default_spec_id,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        self.files.append(file)


def _as_type(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return the array in a type that may differ from its own in names, nullability and the width of offsets only.

    Structs go by position: Arrow's cast goes by name, and makes nulls of a field that it doesn't find.
    """
    if column.type == wanted:
        return column
    if isinstance(column, pa.ExtensionArray) and not isinstance(wanted, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_struct(wanted):
        fields = [_as_type(column.field(index), field.type) for index, field in enumerate(wanted)]
        return pa.StructArray.from_arrays(fields, fields=list(wanted), mask=column.is_null())
    if pa.types.is_list(wanted) or pa.types.is_large_list(wanted):
        kind, offset = (pa.ListArray, pa.int32()) if pa.types.is_list(wanted) else (pa.LargeListArray, pa.int64())
        # Flattening leaves out what lies under a null, so the offsets are counted anew.
        ends = pc.cumulative_sum(pc.fill_null(pc.list_value_length(column), 0).cast(offset))
        offsets = pa.concat_arrays([pa.array([0], offset), ends])
        values = _as_type(flattened(column), wanted.value_type)
        return kind.from_arrays(offsets, values, type=wanted, mask=column.is_null())
    return column if column.type == wanted else column.cast(wanted)


def _writer_options(sample: pa.Table) -> dict[str, Any]:
    """Choose encodings by a look at the first rows; the same for all files of a write."""
    rows = sample.slice(0, SAMPLE_ROWS)
    dictionary = [
        field.name
        for field in rows.schema
        if not pa.types.is_nested(field.type)
        and not pa.types.is_boolean(field.type)
        and not isinstance(field.type, pa.BaseExtensionType)
        and field.name not in _COUNTED
        and pc.count_distinct(rows[field.name]).as_py() < DICTIONARY_SHARE * max(rows.num_rows, 1)
    ]
    return {
        "compression": "zstd",
        "use_dictionary": dictionary,
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in _COUNTED if name in rows.column_names},
        "store_decimal_as_integer": True,
    }
