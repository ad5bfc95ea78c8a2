"""One Parquet data file that is being written, with the statistics that Iceberg keeps of it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io import OutputStream
from pyiceberg.io.pyarrow import data_file_statistics_from_parquet_metadata
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table

from lakeward.storage.arms.iceberg.columns import TableColumns
from lakeward.storage.arms.iceberg.partitions import Partition, Partitions
from lakeward.types.schema import ROW_ID, ROW_INDEX

SAMPLE_ROWS = 20_000
DICTIONARY_SHARE = 0.2
"""A column is dictionary-encoded if less than this share of a sample's values are distinct: else it costs double."""

DENSE, QUICK, NONE = "zstd", "snappy", "none"
"""Text that is not dictionary-encoded shrinks most, by a third more than with the quick codec, and few queries read all
of it. Integers are read most, and unpacking them cost queries a third of their time; in dictionaries they don't shrink
any further. Every engine reads them as they are: see decision 010."""

_COUNTED = (ROW_INDEX, ROW_ID)
"""Columns of ascending integers: their differences are encoded, which makes them nearly free."""

_MOST_DIGITS = 18
"""Decimals of so many digits are 64-bit integers in a file."""


class OpenDataFile:
    """A data file that takes row groups until it is closed.

    Args:
        table: the table that it is for.
        columns: of the table.
        name: of the file, without directories.
        partitions: how the table is partitioned.
        partition: that of the file's rows.
        options: what `writer_options` returned.
    """

    def __init__(
        self,
        table: Table,
        columns: TableColumns,
        name: str,
        partitions: Partitions,
        partition: Partition,
        options: dict[str, Any],
    ) -> None:
        self._table = table
        self._columns = columns
        self._spec_id = partitions.spec.spec_id
        self._partition = partition
        self._options = options
        self._stream: OutputStream | None = None
        self._writer: pq.ParquetWriter | None = None
        self.location = table.location_provider().new_data_location(name, partitions.place(partition))
        self.bytes = 0

    def write(self, rows: pa.Table) -> None:
        """Add a row group; the first one makes the file."""
        if self._stream is None:
            self._stream = self._table.io.new_output(self.location).create()
            self._writer = pq.ParquetWriter(self._stream, self._columns.arrow, **self._options)
        assert self._writer is not None, "a file that failed is abandoned"
        self._writer.write_table(rows, row_group_size=rows.num_rows)
        self.bytes += rows.nbytes

    def close(self) -> DataFile:
        """Finish the file, and return what a manifest says of it."""
        assert self._writer is not None and self._stream is not None, "it has rows"
        self._writer.close()
        size = self._stream.tell()
        self._stream.close()
        statistics = data_file_statistics_from_parquet_metadata(
            parquet_metadata=self._writer.writer.metadata,
            stats_columns=self._columns.statistics,
            parquet_column_mapping=self._columns.paths,
        )
        for column in statistics.column_aggregates.values():
            try:
                column.max_as_bytes()
            except UnicodeEncodeError:
                # PyIceberg cuts text short and counts its last character up: of U+D7FF that makes half a surrogate
                # pair, which no text has. Without an upper bound the file is read in any case.
                column.current_max = None
        file = DataFile.from_args(
            content=DataFileContent.DATA,
            file_path=self.location,
            file_format=FileFormat.PARQUET,
            partition=self._partition.record,
            file_size_in_bytes=size,
            sort_order_id=None,
            equality_ids=None,
            key_metadata=None,
            **statistics.to_serialized_dict(),
        )
        file.spec_id = self._spec_id
        return file

    def abandon(self) -> None:
        """Let go of the file, which is not finished and stays where it is."""
        if self._writer is not None:
            # Else PyArrow finishes the file when it forgets the writer.
            self._writer.is_open = False
        # On a full disk this fails as the write did, whose error is the one to see.
        with contextlib.suppress(OSError):
            if self._stream is not None:
                self._stream.close()


def writer_options(sample: pa.Table) -> dict[str, Any]:
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
        "compression": _compression(rows.schema, dictionary),
        "use_dictionary": dictionary,
        "column_encoding": {name: "DELTA_BINARY_PACKED" for name in _COUNTED if name in rows.column_names},
        "store_decimal_as_integer": True,
    }


def _compression(schema: pa.Schema, dictionary: Sequence[str]) -> dict[str, str]:
    """Return the codec of every Parquet column, by its path."""
    return {
        path: _codec(type_, path in dictionary) for field in schema for path, type_ in _leaves(field.name, field.type)
    }


def _codec(type_: pa.DataType, in_dictionary: bool) -> str:
    if _is_integer(type_):
        return NONE
    return DENSE if _is_text(type_) and not in_dictionary else QUICK


def _is_integer(type_: pa.DataType) -> bool:
    """Say whether a file has a column of this type as integers of 32 or 64 bits."""
    if pa.types.is_decimal(type_):
        return bool(type_.precision <= _MOST_DIGITS)
    return bool(pa.types.is_integer(type_) or pa.types.is_temporal(type_))


def _is_text(type_: pa.DataType) -> bool:
    return bool(pa.types.is_string(type_) or pa.types.is_large_string(type_))


def _leaves(path: str, type_: pa.DataType) -> Iterator[tuple[str, pa.DataType]]:
    """Yield the Parquet columns of a column, each with its path and type."""
    if pa.types.is_list(type_) or pa.types.is_large_list(type_):
        yield from _leaves(f"{path}.list.element", type_.value_type)
    elif pa.types.is_struct(type_):
        for field in type_:
            yield from _leaves(f"{path}.{field.name}", field.type)
    else:
        yield path, type_
