"""Rows that are deleted by their position: reading such marks, of whichever engine, and writing ours.

The Iceberg spec, "Position Delete Files". A row of a snapshot is named by one number, its place: that of its data file
in a list, in the high bits, and its position in that file in the low ones. So DuckDB leaves deleted rows out by an
integer, and no path is held once for each row.
"""

from __future__ import annotations

import itertools
import struct
import uuid
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyiceberg.io.pyarrow import _read_deletes
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import FileScanTask, Table

from lakeward.storage.arms.iceberg.discarding import discard
from lakeward.storage.arms.iceberg.stores import Store, store_of
from lakeward.storage.arms.iceberg.trouble import catalog_errors

FILE_SHIFT = 40
"""A place is `(file << FILE_SHIFT) | position`. No data file has a trillion rows, no snapshot eight million files."""

PATH_ID, POSITION_ID = 2147483546, 2147483545
"""The field ids that the spec reserves for the columns of position delete files."""

_SCHEMA = pa.schema(
    [
        pa.field("file_path", pa.string(), nullable=False, metadata={"PARQUET:field_id": str(PATH_ID)}),
        pa.field("pos", pa.int64(), nullable=False, metadata={"PARQUET:field_id": str(POSITION_ID)}),
    ]
)
_DICTIONARY = pa.schema([_SCHEMA[0].with_type(pa.dictionary(pa.int32(), pa.string())), _SCHEMA[1]])


def deleted_places(table: Table, tasks: Sequence[FileScanTask]) -> npt.NDArray[np.int64]:
    """Return the place of every deleted row, in no order; one that is deleted twice comes twice.

    Args:
        table: the table.
        tasks: data files and the delete files that apply to them; a place counts files by their position here.
    """
    paths = pa.array([task.file.file_path for task in tasks], pa.string())
    numbers = {path: number for number, path in enumerate(paths.to_pylist())}
    found: list[npt.NDArray[np.int64]] = []
    files = set(itertools.chain.from_iterable(task.delete_files for task in tasks))
    store = store_of(table) if files else None
    for file in files:
        assert store is not None
        for path, positions in _read(table, store, file, paths):
            # A file may name data files that are not among these, or not in the snapshot any more.
            number = numbers.get(path) if path is not None else None
            if number is not None:
                found.append(positions | np.int64(number << FILE_SHIFT))
            elif path is None:
                found.append(positions)
    return np.concatenate(found) if found else np.empty(0, np.int64)


def referenced_path(file: DataFile) -> str | None:
    """Return the one data file that a position delete file is for, as its bounds say; None: it may be for several."""
    lower, upper = (file.lower_bounds or {}).get(PATH_ID), (file.upper_bounds or {}).get(PATH_ID)
    return lower.decode() if lower is not None and lower == upper else None


def _read(
    table: Table, store: Store, file: DataFile, paths: pa.Array
) -> list[tuple[str | None, npt.NDArray[np.int64]]]:
    """Return positions by data file; under None, what are places already."""
    if file.file_format != FileFormat.PARQUET:
        read = _read_deletes(table.io, file)
        return [(path, array.cast(pa.int64()).to_numpy()) for path, array in read.items()]
    path = referenced_path(file)
    with pq.ParquetFile(store.opened(file.file_path), read_dictionary=["file_path"]) as source:
        if path is not None:
            return [(path, source.read(["pos"]).column(0).cast(pa.int64()).to_numpy())]
        rows = source.read(["file_path", "pos"])
    number = pc.index_in(rows["file_path"].cast(pa.string()), value_set=paths)
    known = rows["pos"].cast(pa.int64()).filter(number.is_valid()).to_numpy()
    return [(None, known | (number.drop_null().cast(pa.int64()).to_numpy() << FILE_SHIFT))]


class DeleteWriter:
    """Writes one position delete file for each data file that loses rows.

    Args:
        table: the table.
        prefix: the beginning of the files' names.
        what: names the dataset in errors.
    """

    def __init__(self, table: Table, prefix: str, what: str) -> None:
        self._table = table
        self._prefix = prefix
        self._what = what
        self._unique = uuid.uuid4()
        self.files: list[DataFile] = []

    def write(self, data: DataFile, positions: npt.NDArray[np.int64]) -> None:
        """Write the file that deletes rows of one data file.

        Args:
            data: the data file, whose partition the delete file is in, too.
            positions: the rows, ascending, each once; at least one.
        """
        name = f"{self._prefix}-{len(self.files):05d}-{self._unique}-deletes.parquet"
        location = self._table.location_provider().new_data_location(name)
        path = pa.DictionaryArray.from_arrays(np.zeros(len(positions), np.int32), [data.file_path])
        rows = pa.Table.from_arrays([path, pa.array(positions)], schema=_DICTIONARY)
        with catalog_errors(self._what):
            try:
                with self._table.io.new_output(location).create() as stream:
                    writer = pq.ParquetWriter(
                        stream,
                        _DICTIONARY,
                        compression="zstd",
                        store_schema=False,
                        use_dictionary=["file_path"],
                        column_encoding={"pos": "DELTA_BINARY_PACKED"},
                    )
                    writer.write_table(rows)
                    writer.close()
                    size = stream.tell()
            except BaseException:
                discard(self._table.io, self._what, [location])
                raise
        self.files.append(_described(data, location, size, positions, writer.writer.metadata))

    def delete(self) -> None:
        """Delete the files: no snapshot names them, and none has been asked to. What can't be deleted stays."""
        discard(self._table.io, self._what, [file.file_path for file in self.files])
        self.files = []


def _described(
    data: DataFile, location: str, size: int, positions: npt.NDArray[np.int64], metadata: pq.FileMetaData
) -> DataFile:
    """Return the manifest's entry. Its bounds of the path are not cut short: readers find by them what it is for."""
    path = data.file_path.encode()
    first, last = (struct.pack("<q", int(position)) for position in (positions[0], positions[-1]))
    rows = len(positions)
    groups = [metadata.row_group(group) for group in range(metadata.num_row_groups)]
    sizes = [sum(group.column(column).total_compressed_size for group in groups) for column in (0, 1)]
    file = DataFile.from_args(
        content=DataFileContent.POSITION_DELETES,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=data.partition,
        record_count=rows,
        file_size_in_bytes=size,
        column_sizes={PATH_ID: sizes[0], POSITION_ID: sizes[1]},
        value_counts={PATH_ID: rows, POSITION_ID: rows},
        null_value_counts={PATH_ID: 0, POSITION_ID: 0},
        nan_value_counts={},
        lower_bounds={PATH_ID: path, POSITION_ID: first},
        upper_bounds={PATH_ID: path, POSITION_ID: last},
        split_offsets=[4],
        sort_order_id=None,
        equality_ids=None,
        key_metadata=None,
    )
    file.spec_id = data.spec_id
    return file
