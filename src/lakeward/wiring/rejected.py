"""The records of an import that can't be taken: to `<dataset>__rejected`, by the same build as the rows that can.

Files are read once: the rows go to their dataset as they come, and what is told of the others waits in a file without
a name, which goes with the process. Only where the rejected ones have to be written first, since their dataset is the
older of the two, are the files read twice. What is told of a record does not depend on when it is read, so that an
import can be repeated by its idempotency key.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import IO

import pyarrow as pa

from lakeward.control.names import DatasetName
from lakeward.control.texts import storable
from lakeward.errors import SourceFileError, StorageFull, UsageError
from lakeward.sources.file_set import RejectsOf
from lakeward.sources.rejects import Rejected, Rejects
from lakeward.sources.source_file import SourceFile

REFUSE, QUARANTINE = "refuse", "quarantine"
ON_ERROR = (REFUSE, QUARANTINE)
SUFFIX = "__rejected"
COLUMNS = {"file": "string", "line": "long", "column": "string", "reason": "string", "record": "string"}
"""Of the dataset of rejected records. When and by which build they came is told by its versions."""

_SCHEMA = pa.schema(
    [
        ("file", pa.string()),
        ("line", pa.int64()),
        ("column", pa.string()),
        ("reason", pa.string()),
        ("record", pa.string()),
    ]
)
_BATCH_RECORDS = 4_096
_BATCH_CHARACTERS = 8 << 20
_NAMED = 3
"""How many rejected records an error names."""


def rejected_name(dataset: str) -> str:
    """Return the full name of the dataset that the rejected records of an import go to."""
    path = DatasetName.parse(dataset)
    return str(DatasetName(path.catalog, path.schema, path.dataset + SUFFIX))


@dataclass(frozen=True)
class Limit:
    """How many records may be rejected: a number of them, or a part of those that are read. None: any."""

    rows: int | None = None
    percent: Decimal | None = None

    @classmethod
    def parse(cls, text: str | int | None) -> Limit:
        """Read `10` or `0.5%`.

        Raises:
            UsageError: it is neither.
        """
        if text is None:
            return cls()
        number, percent, _ = str(text).strip().partition("%")
        try:
            if percent and 0 <= Decimal(number) <= 100:
                return cls(percent=Decimal(number))
            if not percent and int(number) >= 0:
                return cls(rows=int(number))
        except (InvalidOperation, ValueError):
            pass
        raise UsageError(
            f"{text!r} is no limit of rejected records",
            safe="nothing was changed",
            next_step="give a number of records, as 100, or a part of those that are read, as 0.5%",
        )

    def __str__(self) -> str:
        return f"{self.percent}%" if self.percent is not None else f"{self.rows:,}"


def check_on_error(
    on_error: str, max_rejected: str | int | None, verb: str, deletes_others: bool, instead: str = "--mode upsert"
) -> Limit:
    """Return how many records may be rejected.

    Args:
        on_error: `refuse` or `quarantine`.
        max_rejected: a number or a percentage; None: any number.
        verb: how rows are written.
        deletes_others: whether keys that the files do not have are deleted.
        instead: what to use that does not.

    Raises:
        UsageError: it can't be meant.
    """
    limit = Limit.parse(max_rejected)
    if on_error not in ON_ERROR:
        raise UsageError(
            f"unknown way to deal with records that can't be taken: {on_error!r}; there are {', '.join(ON_ERROR)}",
            safe="nothing was changed",
            next_step="give one of them: --on-error",
        )
    if on_error == REFUSE and max_rejected is not None:
        raise UsageError(
            "a limit of rejected records is given, and none are rejected: the first one refuses the import",
            safe="nothing was changed",
            next_step="add --on-error quarantine",
        )
    if on_error == QUARANTINE and deletes_others:
        raise UsageError(
            f"{verb} deletes the rows whose keys the files do not have, and the key of a rejected record is not known",
            safe="nothing was changed",
            next_step=f"use {instead}, or correct the files and refuse what can't be taken",
        )
    return limit


class Tally:
    """Counts the records of an import that are rejected, and refuses it where they are too many.

    Args:
        dataset: that is imported into, for errors.
        limit: how many may be rejected.
    """

    def __init__(self, dataset: str, limit: Limit) -> None:
        self.rejected = 0
        """How many there are, once the files have been read."""
        self._dataset = dataset
        self._limit = limit
        self._first: list[str] = []

    def rejects_of(self, file: SourceFile) -> Rejects:
        """Return what is told the rejected records of a file.

        Raises:
            SourceFileError: (while it is told them) they are more than the limit's number.
        """
        place = str(file)

        def reject(rejected: Rejected) -> None:
            self.rejected += 1
            if len(self._first) < _NAMED:
                self._first.append(f"{place}: line {rejected.line}: {rejected.reason}")
            if self._limit.rows is not None and self.rejected > self._limit.rows:
                raise self._too_many("")
            self._told(place, rejected)

        return reject

    def check(self, rows: int) -> None:
        """Compare their number with that of the rows, once all have been read.

        Raises:
            SourceFileError: they are more than the limit's part.
        """
        percent, records = self._limit.percent, rows + self.rejected
        if percent is not None and self.rejected * 100 > percent * records:
            raise self._too_many(f" of {records:,} records")

    def _told(self, place: str, rejected: Rejected) -> None:
        """Take note of a record."""

    def _too_many(self, of: str) -> SourceFileError:
        return SourceFileError(
            f"dataset {self._dataset}: {self.rejected:,}{of} can't be taken, and {self._limit} may be rejected; "
            f"the first: {'; '.join(self._first)}",
            next_step="correct the files, or let more be rejected: --max-rejected",
            rejected=self.rejected,
        )


class Apart(Tally):
    """The records of an import, taken apart.

    Args:
        read: starts a read of the files.
        dataset, limit: see `Tally`.
        scratch: where those that are rejected wait.
    """

    def __init__(
        self, read: Callable[[RejectsOf], pa.RecordBatchReader], dataset: str, limit: Limit, scratch: Path
    ) -> None:
        super().__init__(dataset, limit)
        self._read = read
        self._scratch = scratch
        self._waiting: list[tuple[str, Rejected]] = []
        self._characters = 0
        self._file: IO[bytes] | None = None
        self._spool: pa.ipc.RecordBatchStreamWriter | None = None
        self._complete = False

    def good_rows(self) -> pa.RecordBatchReader:
        """Return the rows that can be taken.

        Raises:
            SourceFileError: a file is not what it claims to be; (while reading) more records are rejected than may be.
        """
        reader = self._read(lambda file: self._once(self.rejects_of(file)))
        return pa.RecordBatchReader.from_batches(reader.schema, self._noted(reader))

    def rejected_rows(self) -> pa.RecordBatchReader:
        """Return what is told of the others, in the columns of `COLUMNS`; reads the files if nobody has yet.

        Raises:
            SourceFileError: see `good_rows`.
        """
        for _ in () if self._complete else self.good_rows():
            pass
        if self._file is None:
            return pa.RecordBatchReader.from_batches(_SCHEMA, iter(()))
        self._file.seek(0)
        return pa.ipc.open_stream(self._file)

    def _once(self, reject: Rejects) -> Rejects:
        return lambda rejected: None if self._complete else reject(rejected)

    def _noted(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        rows = 0
        for batch in reader:
            rows += batch.num_rows
            yield batch
        if self._complete:
            return
        self.check(rows)
        self._keep()
        if self._spool is not None:
            self._spool.close()
        self._complete = True

    def _told(self, place: str, rejected: Rejected) -> None:
        self._waiting.append((place, rejected))
        self._characters += len(rejected.record)
        if len(self._waiting) >= _BATCH_RECORDS or self._characters >= _BATCH_CHARACTERS:
            self._keep()

    def _keep(self) -> None:
        if not self._waiting:
            return
        told = [each for _, each in self._waiting]
        columns = (
            [place for place, _ in self._waiting],
            [each.line for each in told],
            [each.column for each in told],
            [storable(each.reason) for each in told],
            [storable(each.record) for each in told],
        )
        self._waiting, self._characters = [], 0
        arrays = [pa.array(values, field.type) for values, field in zip(columns, _SCHEMA, strict=True)]
        try:
            if self._spool is None:
                self._scratch.mkdir(mode=0o700, parents=True, exist_ok=True)
                self._file = tempfile.TemporaryFile(dir=self._scratch)  # noqa: SIM115
                self._spool = pa.ipc.new_stream(self._file, _SCHEMA)
            self._spool.write_batch(pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA))
        except OSError as error:
            raise StorageFull(
                f"dataset {self._dataset}: rejected records can't be kept in {self._scratch}: "
                f"{error.strerror or error}",
                safe="nothing was written",
                next_step="free space there",
            ) from error
