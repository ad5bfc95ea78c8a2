"""Keeps the changes of one table until they are written: in memory, and what is more than a little in a file."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import StorageFull
from lakeward.sources.change_log import OP, TRUNCATE, UNCHANGED

IN_MEMORY_BYTES = 32 << 20
"""Changes of more bytes go to a file."""

_LZ4 = pa.ipc.IpcWriteOptions(compression="lz4")


class ChangeSpool:
    """Changes in the order of the log. They are numbered from 0, and can be read any number of times.

    Args:
        directory: where the file is made; the file itself has no name and goes with the process.
        in_memory: bytes that are kept in memory.
    """

    def __init__(self, directory: Path, in_memory: int = IN_MEMORY_BYTES) -> None:
        self._directory = directory
        self._in_memory = in_memory
        self._waiting: list[pa.RecordBatch] = []
        self._waiting_bytes = 0
        self._path: Path | None = None
        self._file: BinaryIO | None = None
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self.schema: pa.Schema | None = None
        self.rows = 0
        self.size = 0
        """Bytes in memory of all changes."""
        self.first = 0
        """The number of the first change after the last truncation: no change before it counts."""
        self.truncated = False
        self.unsent: set[str] = set()
        """The columns of which a change that counts lacks the value, because it is large and did not change."""

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep a batch.

        Raises:
            StorageFull: there is no space for the file.
        """
        self.schema = batch.schema
        cleared = pc.equal(batch.column(OP), TRUNCATE)
        if pc.any(cleared, min_count=0).as_py():
            last = len(cleared) - 1 - pc.index(cleared[::-1], True).as_py()
            self.truncated, self.first = True, self.rows + last + 1
            self.unsent.clear()
            self._note_unsent(batch.slice(last + 1))
        else:
            self._note_unsent(batch)
        self.rows += batch.num_rows
        self.size += batch.nbytes
        self._waiting.append(batch)
        self._waiting_bytes += batch.nbytes
        if self._waiting_bytes > self._in_memory:
            self._spill()

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the changes, each batch with the number of its first row; nothing can be added any more.

        Args:
            columns: those that are wanted; None: all.

        Raises:
            StorageFull: there is no space for the end of the file.
        """
        start = 0
        for batch in self._all():
            yield start, batch if columns is None else batch.select(list(columns))
            start += batch.num_rows

    def numbered(self, columns: Sequence[str], last: npt.NDArray[np.bool_] | None = None) -> pa.RecordBatchReader:
        """Stream the changes that count: numbers as `n`, these columns as `c0`, `c1` …; and `last`, if it is given."""
        assert self.schema is not None
        fields = [pa.field(f"c{number}", self.schema.field(name).type) for number, name in enumerate(columns)]
        schema = pa.schema([("n", pa.int64()), *fields, *([("last", pa.bool_())] if last is not None else [])])

        def batches() -> Iterator[pa.RecordBatch]:
            for start, batch in self.batches(columns):
                begin, end = max(self.first, start), start + batch.num_rows
                if begin >= end:
                    continue
                arrays = [pa.array(np.arange(begin, end)), *batch.slice(begin - start).columns]
                flags = [] if last is None else [pa.array(last[begin:end])]
                yield pa.RecordBatch.from_arrays([*arrays, *flags], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, batches())

    def close(self) -> None:
        """Give up what is kept; repeating it does nothing."""
        self._waiting.clear()
        # What can't be written any more is not wanted any more either.
        with suppress(StorageFull):
            self._finish()
        if self._path is not None:
            self._path.unlink(missing_ok=True)
            self._path = None

    def _all(self) -> Iterator[pa.RecordBatch]:
        self._finish()
        if self._path is not None:
            with pa.OSFile(str(self._path)) as file, pa.ipc.open_stream(file) as reader:
                yield from reader
        yield from self._waiting

    def _note_unsent(self, batch: pa.RecordBatch) -> None:
        column = batch.column(UNCHANGED)
        if column.null_count < len(column):
            self.unsent.update(pc.unique(pc.list_flatten(column)).to_pylist())

    def _spill(self) -> None:
        with self._named_errors():
            if self._writer is None:
                handle, name = tempfile.mkstemp(prefix="changes-", dir=self._directory)
                self._path = Path(name)
                self._file = open(handle, "wb")  # noqa: SIM115
                self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), self._waiting[0].schema, options=_LZ4)
            for batch in self._waiting:
                self._writer.write_batch(batch)
        self._waiting.clear()
        self._waiting_bytes = 0

    def _finish(self) -> None:
        """End the file. What its buffer still holds is written here, where it is seen if that fails."""
        writer, file = self._writer, self._file
        self._writer = self._file = None
        if writer is None or file is None:
            return
        with self._named_errors(), file:
            writer.close()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StorageFull(
                f"changes that wait to be written can't be kept in {self._directory}: {error}",
                safe="nothing of them was written, and they will come again",
                next_step="free space on its disk",
            ) from error
