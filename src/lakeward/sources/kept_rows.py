"""Keeps the rows that a full scan has read, so that an import need not read and convert the files once more.

While types are being found, rows are kept as the types that hold all values so far, in a file without a name. A type
that has to be widened later is widened from there, where that is exact: the digits of a `long` are those of its text,
and those of `1.5` as a decimal are not. Rows that can't be brought to the type that was found, and those for which
there is no room, are read from their file again: what is kept saves time, and decides nothing.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Hashable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa

from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type

_SHARE_OF_FREE_SPACE = 4
"""At most such a part of what is free on the disk is taken: others need some, too."""


@dataclass
class _Kept:
    """The rows of one file: where their streams begin, of one schema each, and the types that each column has."""

    starts: list[int] = field(default_factory=list)
    types: dict[str, set[pa.DataType]] = field(default_factory=dict)


class KeptRows:
    """Rows of several files, each in the order in which they were added.

    Args:
        directory: where they are kept; made if it is missing.

    Example:
        >>> from contextlib import closing
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder, closing(KeptRows(Path(folder))) as kept:
        ...     kept.begin("a.csv")
        ...     kept.add(pa.record_batch({"id": pa.array([1, 2])}))
        ...     kept.add(pa.record_batch({"id": pa.array(["x"])}))
        ...     [batch.to_pydict() for batch in kept.rows_of("a.csv", {"id": "string"}) or ()]
        [{'id': ['1', '2']}, {'id': ['x']}]
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._file: IO[bytes] | None = None
        self._room = 0
        self._writer: pa.ipc.RecordBatchStreamWriter | None = None
        self._schema: pa.Schema | None = None
        self._of: dict[Hashable, _Kept] = {}
        self._now: _Kept | None = None
        self.full = False
        """Whether there is no room, so that nothing more is kept."""

    def begin(self, file: Hashable) -> None:
        """Take the rows that are added from now on for those of a file."""
        if not self.full:
            self._finish()
            self._now = self._of[file] = _Kept()

    def add(self, batch: pa.RecordBatch) -> None:
        """Keep rows, if there is room; a column of type null holds none but nulls."""
        if self._now is None:
            return
        try:
            if self._file is None:
                self._open()
            assert self._file is not None, "it was opened"
            if batch.schema != self._schema:
                self._finish()
                self._now.starts.append(self._file.tell())
                self._schema = batch.schema
                self._writer = pa.ipc.new_stream(pa.PythonFile(self._file, "w"), batch.schema)
            assert self._writer is not None, "it is that of the schema"
            self._writer.write_batch(batch)
            for column in batch.schema:
                self._now.types.setdefault(column.name, set()).add(column.type)
            self.full = self._file.tell() > self._room
        except OSError:
            self.full = True
        if self.full:
            self.close()

    def rows_of(self, file: Hashable, types: Mapping[str, str]) -> Iterator[pa.RecordBatch] | None:
        """Return a file's rows as batches of the given types; None: they have to be read from the file.

        Args:
            file: which one.
            types: the logical type text of every column, in the order that the batches shall have.
        """
        kept = self._of.get(file)
        if kept is None or self._file is None or kept.types.keys() != types.keys():
            return None
        wanted = {name: arrow_type(parse_type(text)) for name, text in types.items()}
        if not all(_is_exact(has, wanted[name]) for name, found in kept.types.items() for has in found):
            return None
        self._finish()
        return self._batches(kept, pa.schema(list(wanted.items())))

    def close(self) -> None:
        """Give up everything that is kept; repeating it does nothing."""
        self._of.clear()
        self._now = self._writer = self._schema = None
        if self._file is not None:
            # What its buffer still holds is not wanted, and may find no room either.
            with suppress(OSError):
                self._file.close()
            self._file = None

    def _open(self) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._room = shutil.disk_usage(self._directory).free // _SHARE_OF_FREE_SPACE
        self._file = tempfile.TemporaryFile(dir=self._directory)  # noqa: SIM115

    def _finish(self) -> None:
        if self._writer is not None:
            self._writer.close()
        self._writer = self._schema = None

    def _batches(self, kept: _Kept, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        assert self._file is not None, "rows are kept"
        for start in kept.starts:
            self._file.seek(start)
            for batch in pa.ipc.open_stream(pa.PythonFile(self._file, "r")):
                arrays = [_as_type(batch.column(each.name), each.type) for each in schema]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _is_exact(has: pa.DataType, wanted: pa.DataType) -> bool:
    """Tell whether values that were kept as one type are those that their texts would be as the other."""
    if has == wanted or pa.types.is_null(has):
        return True
    if pa.types.is_decimal(wanted):
        return bool(pa.types.is_int64(has) or (pa.types.is_decimal(has) and has.scale <= wanted.scale))
    if pa.types.is_float64(wanted):
        return bool(pa.types.is_int64(has) or pa.types.is_decimal(has))
    # These have one text each.
    return bool(pa.types.is_string(wanted) and (pa.types.is_int64(has) or pa.types.is_date32(has)))


def _as_type(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    if values.type == wanted:
        return values
    if pa.types.is_null(values.type):
        return pa.nulls(len(values), wanted)
    if pa.types.is_int64(values.type) and pa.types.is_decimal(wanted):
        # The cast asks for as many digits as the longest of all longs has.
        values = values.cast(pa.decimal128(38, 0))
    if pa.types.is_decimal(values.type) and pa.types.is_float64(wanted):
        # By way of its digits, of which the nearest double is taken.
        values = values.cast(pa.string())
    return values.cast(wanted)
