"""The one moment of a source that all tables of a sync are read in, by several readers at a time where it lets us."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from types import TracebackType

import pyarrow as pa

from lakeward.errors import LakewardError, SourceError, Stopped
from lakeward.sources.connector import Connector, ReadWindow, Snapshot, TableRead

log = logging.getLogger("lakeward.syncing")


class Moment:
    """Begins when the first table is read: every dataset is held then. All tables are read as they were at that moment.

    Args:
        connector: the source.
        readers: how many tables may be read at a time. Fewer are, with a line in the log, where the source refuses.
    """

    def __init__(self, connector: Connector, readers: int) -> None:
        self._connector = connector
        self._wanted = readers
        self._stack = ExitStack()
        self._changed = threading.Condition()
        self._readers: list[Snapshot] = []
        self._free: list[Snapshot] = []
        self._given_up = False
        self.raised: LakewardError | None = None
        """What ended a stream first: on its way through other libraries it may keep only its text."""

    def read(self, window: ReadWindow) -> TableRead:
        """Stream rows as `Snapshot.read` does, as soon as a reader is free: it is until the stream has ended."""
        reader = self._take()
        try:
            read = reader.read(window)
        except BaseException:
            self._give_back(reader)
            raise
        rows = pa.RecordBatchReader.from_batches(read.rows.schema, self._batches(reader, read.rows))
        return replace(read, rows=rows)

    def give_up(self) -> None:
        """Let all streams end soon, by an error; another thread may call it, until they have ended.

        A query that is about to be sent is not reached by it.
        """
        with self._changed:
            busy = [reader for reader in self._readers if reader not in self._free]
            self._given_up = True
            self._changed.notify_all()
        for reader in busy:
            reader.give_up()

    def _batches(self, reader: Snapshot, rows: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        try:
            self._go_on()
            yield from rows
        except LakewardError as error:
            # What ends because it was given up did not end the sync.
            if self.raised is None and not self._given_up:
                self.raised = error
            raise
        finally:
            self._give_back(reader)

    def _take(self) -> Snapshot:
        with self._changed:
            if not self._readers:
                self._begin()
            self._changed.wait_for(lambda: self._free or self._given_up)
            self._go_on()
            return self._free.pop()

    def _go_on(self) -> None:
        if self._given_up:
            raise Stopped("another table could not be synced", safe="every dataset is unchanged")

    def _give_back(self, reader: Snapshot) -> None:
        with self._changed:
            self._free.append(reader)
            self._changed.notify_all()

    def _begin(self) -> None:
        """Open every reader: one that is read from can't say any more which moment it sees."""
        first = self._stack.enter_context(self._connector.snapshot())
        self._readers.append(first)
        try:
            while len(self._readers) < self._wanted and (another := first.beside()) is not None:
                self._readers.append(self._stack.enter_context(another))
        except SourceError as error:
            log.warning("%d tables are read at a time, not %d: %s", len(self._readers), self._wanted, error.message)
        self._free += self._readers

    def __enter__(self) -> Moment:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
