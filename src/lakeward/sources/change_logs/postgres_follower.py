"""Transactions of a stream of messages, as batches of changes by table that are bounded in bytes."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from lakeward.errors import LakewardError
from lakeward.sources.change_log import Changes
from lakeward.sources.change_logs import pgoutput
from lakeward.sources.change_logs.pgoutput import Begin, Relation
from lakeward.sources.change_logs.postgres_position import LogPosition
from lakeward.sources.change_logs.postgres_slot import SlotStream
from lakeward.sources.change_logs.postgres_table import Columns, LoggedTable, RefusedChange

LARGEST = 8 << 20
"""Bytes of messages after which a batch is handed on."""


@dataclass
class _Gathered:
    """What is not handed on yet.

    Args:
        transactions: those that changes were gathered of, in order.
        end: up to where whole transactions were read.
        open: whether the end of the last one is still to come.
        begun: whether a part of the first one was handed on.
        commit: where that one is committed.
        open_size, size: bytes of its messages, and of those of all.
    """

    end: int
    transactions: list[Begin] = field(default_factory=list)
    open: bool = False
    begun: bool = False
    commit: int = 0
    open_size: int = 0
    size: int = 0


class Follower:
    """Reads one stream.

    Args:
        stream: of a slot.
        start: up to where whole transactions were read before.
        tables: those that are followed.
        columns: tells the columns of a table as the log had it.
    """

    def __init__(
        self,
        stream: SlotStream,
        start: int,
        tables: Sequence[LoggedTable],
        columns: Columns,
    ) -> None:
        self._stream = stream
        self._tables = {table.oid.to_bytes(4, "big"): table for table in tables}
        self._names = {table.name: table for table in tables}
        self._columns = columns
        self._gathered = _Gathered(start)
        self._ordinal = 0

    def changes(self, wait_seconds: float) -> Iterator[Changes]:
        """Read on, without end.

        Raises:
            SchemaError: a table has not the columns any more that it had; what was before is handed on first.
            ValueRefused: a value has no form in its column's type; transactions before its own are handed on first.
            Unreadable: a message is not one of the protocol.
        """
        gathered = self._gathered
        deadline = time.monotonic() + wait_seconds
        while True:
            message = self._stream.read(deadline)
            if message is not None:
                try:
                    self._gather(message)
                except LakewardError:
                    yield from self._whole()
                    raise
            # The first of many messages that are left out may be long ago.
            if message is None or gathered.size >= LARGEST or time.monotonic() >= deadline:
                if message is None and not gathered.open:
                    gathered.end = max(gathered.end, self._stream.looked_at)
                yield from self._whole()
                if gathered.size >= LARGEST:
                    yield from self._part()
                deadline = time.monotonic() + wait_seconds

    def _gather(self, message: bytes) -> None:
        """Keep a message, or what it says."""
        tag, gathered = message[0], self._gathered
        if tag in _ROWS:
            self._ordinal += 2
            table = self._tables.get(message[1:5])
            if table is not None and gathered.commit >= table.after:
                self._add(table, message)
        elif tag == pgoutput.BEGIN:
            self._begin(pgoutput.begin(message))
        elif tag == pgoutput.COMMIT:
            gathered.end = pgoutput.commit_end(message)
            gathered.open, gathered.open_size = False, 0
        elif tag == pgoutput.RELATION:
            self._describe(pgoutput.relation(message))
        elif tag == pgoutput.TRUNCATE:
            self._ordinal += 2
            for oid in pgoutput.truncated(message):
                table = self._tables.get(oid.to_bytes(4, "big"))
                if table is not None and gathered.commit >= table.after:
                    self._add(table, message)
        elif tag not in pgoutput.IGNORED:
            raise pgoutput.Unreadable(f"a message of kind {message[:1]!r}")

    def _add(self, table: LoggedTable, message: bytes) -> None:
        gathered = self._gathered
        table.add(message, self._ordinal, len(gathered.transactions) - 1, self._columns)
        gathered.open_size += len(message)
        gathered.size += len(message)

    def _begin(self, begin: Begin) -> None:
        gathered = self._gathered
        gathered.transactions.append(begin)
        gathered.open = True
        gathered.commit, gathered.open_size = begin.commit, 0
        self._ordinal = 0

    def _describe(self, relation: Relation) -> None:
        table = self._tables.get(relation.oid.to_bytes(4, "big"))
        if table is None and (table := self._names.get(relation.full_name)) is not None:
            # Another table of the same name: its first change is refused.
            self._tables[relation.oid.to_bytes(4, "big")] = table
        if table is not None:
            table.relation = relation

    def _whole(self) -> Iterator[Changes]:
        """Give up what whole transactions changed."""
        gathered = self._gathered
        whole = len(gathered.transactions) - gathered.open
        before, rows, refused = self._taken(whole)
        # What was committed before the transaction that is refused is read.
        end = gathered.end if refused is None else gathered.transactions[before].commit
        del gathered.transactions[:before]
        gathered.begun = gathered.begun and not before
        gathered.size = gathered.open_size
        yield Changes(None if gathered.begun else self._position(end), rows)
        if refused is not None:
            raise refused

    def _part(self) -> Iterator[Changes]:
        """Give up what is there of the transaction whose end is still to come."""
        gathered = self._gathered
        _, rows, refused = self._taken(1)
        if refused is not None:
            raise refused
        gathered.begun = True
        gathered.size = gathered.open_size = 0
        yield Changes(None, rows)

    def _taken(self, before: int) -> tuple[int, dict[str, pa.RecordBatch], LakewardError | None]:
        """Take the changes of transactions before this number, or before the first one that is refused.

        Args:
            before: the number.

        Returns:
            Before which they are, by table, and why not more.
        """
        refused = None
        while True:
            try:
                found = {name: each.gathered(before, self._gathered.transactions) for name, each in self._names.items()}
                break
            except RefusedChange as change:
                before, refused = change.transaction, change.error
        for each in self._names.values():
            each.forget(before)
        return before, {name: batch for name, batch in found.items() if batch is not None}, refused

    def _position(self, place: int) -> Mapping[str, object]:
        return LogPosition(self._stream.server, place).to_json()


_ROWS = frozenset((pgoutput.INSERT, pgoutput.UPDATE, pgoutput.DELETE))
