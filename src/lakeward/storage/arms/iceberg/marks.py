"""Marks rows of data files as deleted: a delete file for each file that keeps some, and the rest leave the snapshot."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyiceberg.manifest import DataFile
from pyiceberg.table import FileScanTask

from lakeward.storage.arms.iceberg.deletes import FILE_SHIFT, DeleteWriter, referenced_path
from lakeward.storage.duck import PULL_ROWS, joined

CHECK_EVERY = 64
"""After so many delete files the lease is looked at."""


class Marks:
    """The deletion of rows by file and position.

    Args:
        connection: where the rows are named.
        tasks: the data files, by number, with the delete files that apply to them.
        dead: places of rows that are deleted already, see `deletes`.
    """

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, tasks: Sequence[FileScanTask], dead: npt.NDArray[np.int64]
    ) -> None:
        self._connection = connection
        self._tasks = tasks
        self._dead = dead

    def write(self, doomed: str, deletes: DeleteWriter, check: Callable[[], None]) -> set[str]:
        """Write the delete files; return the paths of files that have no live row left, and so leave the snapshot.

        Args:
            doomed: the query of the rows, each once: `file`, a number of `tasks`, and `row`, its position there.
            deletes: takes the positions.
            check: raises if the lease is lost.
        """
        counts = self._connection.execute(f"SELECT file, count(*) FROM ({doomed}) GROUP BY file").fetchall()
        emptied = self._emptied(counts)
        rows = joined(
            self._connection.sql(f"SELECT file, row FROM ({doomed}) ORDER BY file, row").to_arrow_reader(PULL_ROWS),
            pa.schema([("file", pa.int64()), ("row", pa.int64())]),
        )
        written = 0
        for number, positions in _by_file(rows):
            if number not in emptied:
                deletes.write(self._tasks[number].file, positions)
                written += 1
                if written % CHECK_EVERY == 0:
                    check()
        return self._leaving([self._tasks[number] for number in emptied])

    def _emptied(self, hits: Sequence[tuple[int, ...]]) -> set[int]:
        """Return the numbers of the files whose live rows all go, given how many of each do."""
        marks = np.bincount(self._dead >> FILE_SHIFT, minlength=len(self._tasks))
        emptied: set[int] = set()
        for number, going in hits:
            rows = self._tasks[number].file.record_count
            # A row that is marked twice is gone once; to find that out is worth it where it can matter.
            if going + marks[number] >= rows:
                gone = np.unique(self._dead[self._dead >> FILE_SHIFT == number]).size
                assert going + gone <= rows, f"{going} rows to go, {gone} gone of {rows}"
                if going + gone == rows:
                    emptied.add(number)
        return emptied

    @staticmethod
    def _leaving(emptied: list[FileScanTask]) -> set[str]:
        """Return the paths of data files, and those of the delete files that are for no other data file."""
        data = {task.file.file_path for task in emptied}
        marks: set[DataFile] = set(itertools.chain.from_iterable(task.delete_files for task in emptied))
        return data | {file.file_path for file in marks if referenced_path(file) in data}


def _by_file(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Yield each file's number and rows, from batches sorted by both."""
    current: int | None = None
    held: list[npt.NDArray[np.int64]] = []
    for batch in batches:
        files, rows = batch.column(0).to_numpy(), batch.column(1).to_numpy()
        starts = np.flatnonzero(np.diff(files)) + 1
        for part, number in zip(np.split(rows, starts), files[np.r_[0, starts]], strict=True):
            if current is not None and number != current:
                yield current, np.concatenate(held)
                held = []
            current = int(number)
            held.append(part)
    if current is not None:
        yield current, np.concatenate(held)
