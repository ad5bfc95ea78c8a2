"""Writes a stream of batches to Parquet data files of bounded size, those of each partition by themselves."""

from __future__ import annotations

import itertools
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any

import numpy as np
import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table

from lakeward.storage.arms.iceberg.columns import TableColumns
from lakeward.storage.arms.iceberg.data_file import OpenDataFile, writer_options
from lakeward.storage.arms.iceberg.discarding import discard
from lakeward.storage.arms.iceberg.formats import refuse_format
from lakeward.storage.arms.iceberg.partitions import UNPARTITIONED, Partition, Partitions
from lakeward.storage.arms.iceberg.trouble import catalog_errors
from lakeward.storage.pump import prefetched
from lakeward.types.schema import Schema

ROW_GROUP_ROWS = 262_144
ROW_GROUP_BYTES = 128 << 20
"""Rows of one row group, or fewer if they have so many bytes in memory: what the writer holds."""

WORTH_A_GROUP = 16_384
"""Rows of one partition that make a row group worth its while; fewer wait for more, as long as there is room."""


MAX_OPEN_FILES = 64
"""Each has buffers of its own. Beyond, the one that was written to least recently is closed."""


class RollingWriter:
    """Writes data files one after the other; memory is bounded by one row group, not by the files or the dataset.

    Rows of a partitioned table are gathered until there are enough of some partitions for row groups. At most one row
    group's number of rows is kept waiting, and at most `MAX_OPEN_FILES` files are open.

    PyIceberg's own append of a reader queues every file eagerly, so it is not used.

    Args:
        table: the table that the files are for.
        prefix: the beginning of the files' names.
        target_bytes: a file is closed when its rows have had this size in memory.
        what: names the dataset in errors.
        columns: the dataset's, found in the table by field id.

    Raises:
        StorageError: the table is of a format that can be read only.
        ColumnMismatch, DataError: the table has not the columns for these rows, or can't be written by its partitions.
    """

    def __init__(self, table: Table, prefix: str, target_bytes: int, what: str, columns: Schema) -> None:
        refuse_format(table, what)
        self._table = table
        self._what = what
        self._prefix = prefix
        self._target_bytes = target_bytes
        self._columns = TableColumns(table.schema(), columns, what, table.properties)
        self._partitions = Partitions(table, what)
        self._numbers = itertools.count()
        self._unique = uuid.uuid4()
        self._options: dict[str, Any] | None = None
        self._open: OrderedDict[tuple[Any, ...], OpenDataFile] = OrderedDict()
        self._group: list[pa.RecordBatch] = []
        self._group_rows = 0
        self._group_bytes = 0
        self._waiting = 0
        self._waiting_bytes = 0
        self.files: list[DataFile] = []
        self.rows = 0

    def write_all(self, batches: Iterable[pa.RecordBatch], check: Callable[[], None]) -> None:
        """Write a whole stream, made by one thread and encoded by this one; on a failure delete its files.

        Args:
            batches: the business columns in the dataset's order, then the identity columns. What it raises comes out
                unchanged.
            check: called before every row group; raises to stop.

        Raises:
            StorageFull, CatalogError: the files can't be written.
            DataError: a value belongs to no partition.
        """
        try:
            with prefetched(batches, size=attrgetter("nbytes")) as ready:
                for batch in ready:
                    if not self._has_room(batch):
                        check()
                        with catalog_errors(self._what):
                            self._flush(last=False)
                    self._add(batch)
            with catalog_errors(self._what):
                self._flush(last=True)
                while self._open:
                    self._close_file(next(iter(self._open)))
        except BaseException:
            self.delete()
            raise

    def delete(self) -> None:
        """Delete the files: no snapshot names them, and none has been asked to. What can't be deleted stays."""
        written = [file.file_path for file in self.files]
        for file in self._open.values():
            written.append(file.location)
            file.abandon()
        self._open.clear()
        discard(self._table.io, self._what, written)
        self.files = []

    def _has_room(self, batch: pa.RecordBatch) -> bool:
        """Say whether a batch goes into one row group with what came since the last one was written."""
        rows, size = self._group_rows - self._waiting, self._group_bytes - self._waiting_bytes
        return not rows or (rows + batch.num_rows <= ROW_GROUP_ROWS and size + batch.nbytes <= ROW_GROUP_BYTES)

    def _add(self, batch: pa.RecordBatch) -> None:
        self._group.append(self._columns.take(batch))
        self._group_rows += batch.num_rows
        self._group_bytes += batch.nbytes
        self.rows += batch.num_rows

    def _flush(self, last: bool) -> None:
        if not self._group_rows:
            return
        group = pa.Table.from_batches(self._group)
        self._group, self._group_rows, self._group_bytes = [], 0, 0
        if self._options is None:
            self._options = writer_options(group)
        if self._partitions.is_none:
            self._write(UNPARTITIONED, group)
        else:
            self._write_partitions(group.combine_chunks(), last)

    def _write_partitions(self, group: pa.Table, last: bool) -> None:
        """Write the rows of those partitions that have enough, of all of them at the end; the others wait."""
        codes, partitions = self._partitions.of(group)
        if len(partitions) == 1:
            self._write(partitions[0], group)
            self._waiting = self._waiting_bytes = 0
            return
        counts = np.bincount(codes, minlength=len(partitions))
        written = _enough(counts, _group_rows(group), last)
        # Fewer numbers sort faster: two bytes by radix.
        order = np.argsort(codes.astype(np.uint16) if len(partitions) <= 2**16 else codes, kind="stable")
        chosen = np.repeat(written, counts)
        rows = group.take(pa.array(order[chosen]))
        start = 0
        for at in np.flatnonzero(written):
            self._write(partitions[at], rows.slice(start, counts[at]))
            start += int(counts[at])
        # A copy, so that what waits does not keep in memory what is written.
        rest = group.take(pa.array(np.sort(order[~chosen])))
        self._group = rest.to_batches()
        self._group_rows = self._waiting = rest.num_rows
        self._group_bytes = self._waiting_bytes = rest.nbytes

    def _write(self, partition: Partition, rows: pa.Table) -> None:
        file = self._open.get(partition.key)
        if file is None:
            if len(self._open) >= MAX_OPEN_FILES:
                self._close_file(next(iter(self._open)))
            assert self._options is not None
            name = f"{self._prefix}-{next(self._numbers):05d}-{self._unique}.parquet"
            file = OpenDataFile(self._table, self._columns, name, self._partitions, partition, self._options)
            self._open[partition.key] = file
        self._open.move_to_end(partition.key)
        file.write(rows)
        if file.bytes >= self._target_bytes:
            self._close_file(partition.key)

    def _close_file(self, key: tuple[Any, ...]) -> None:
        self.files.append(self._open[key].close())
        del self._open[key]


def _group_rows(rows: pa.Table) -> int:
    """Return how many rows like these make a row group."""
    return min(ROW_GROUP_ROWS, int(ROW_GROUP_BYTES * rows.num_rows / max(rows.nbytes, 1)))


def _enough(counts: np.ndarray, group_rows: int, last: bool) -> np.ndarray:
    """Say which partitions are written, given the rows that each has: at most half a row group of rows waits."""
    if last:
        return np.ones(len(counts), bool)
    written = counts >= WORTH_A_GROUP
    waiting = int(counts[~written].sum())
    for at in np.argsort(-counts, kind="stable"):
        if waiting <= group_rows // 2:
            break
        if not written[at]:
            written[at] = True
            waiting -= int(counts[at])
    return written
