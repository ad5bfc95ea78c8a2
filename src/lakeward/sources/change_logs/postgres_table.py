"""One followed table: its messages are gathered, and become a batch of changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lakeward.errors import SchemaError, ValueRefused
from lakeward.sources.change_log import (
    CHANGE_COLUMNS,
    DELETE,
    INSERT,
    TRUNCATE,
    UNCHANGED,
    UPDATE,
    FollowedTable,
)
from lakeward.sources.change_logs import pgoutput
from lakeward.sources.change_logs.pgoutput import Begin, Relation
from lakeward.sources.change_logs.pgoutput_rows import RowMessages, read_rows
from lakeward.sources.change_logs.postgres_text import RefusedText, parse_texts
from lakeward.sources.connectors.postgres import PostgresColumn
from lakeward.sources.connectors.postgres_rows import value_refused
from lakeward.types.logical import parse_type
from lakeward.types.table import arrow_type

_OPS = pa.array([INSERT, UPDATE, DELETE, TRUNCATE])
_INSERT, _UPDATE, _DELETE, _TRUNCATE = range(4)

Indices = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Columns = Callable[[Relation], Sequence[PostgresColumn]]
"""Tells the columns of a table as the log had it."""


class RefusedChange(Exception):
    """A change that can't be handed on; those of transactions before its own can.

    Args:
        transaction: the number of its transaction.
        error: what is wrong with it.
    """

    def __init__(self, transaction: int, error: ValueRefused) -> None:
        super().__init__(error.message)
        self.transaction = transaction
        self.error = error


class LoggedTable:
    """Gathers what happened to a table.

    Args:
        followed: which one, and how it is read.
        oid: what the source knows it by.
        after: where in the log its changes begin.
    """

    def __init__(self, followed: FollowedTable, oid: int, after: int) -> None:
        self.name = followed.table.full_name
        self.oid = oid
        self.after = after
        self.relation: Relation | None = None
        self._followed = followed
        self._table = followed.table
        self._columns = {column.name: column for column in self._table.columns}
        fields = [pa.field(name, arrow_type(parse_type(type_))) for name, type_ in followed.types.items()]
        self._schema = pa.schema([*CHANGE_COLUMNS, *fields])
        self._accepted: Relation | None = None
        self._key: list[int] = []
        self._messages: list[bytes] = []
        self._ordinals: list[int] = []
        self._transactions: list[int] = []

    def add(self, message: bytes, ordinal: int, transaction: int, columns: Columns) -> None:
        """Gather a message of a row, or of a truncation.

        Args:
            message: as it came.
            ordinal: its place in the transaction; the next number is free, too.
            transaction: the number of the transaction, which rises.
            columns: is asked when the table changed since the last message.

        Raises:
            SchemaError: the table has not the columns any more that it had.
        """
        if self.relation is not self._accepted:
            assert self.relation is not None
            self._accept(self.relation, columns)
        self._messages.append(message)
        self._ordinals.append(ordinal)
        self._transactions.append(transaction)

    def gathered(self, before: int, transactions: Sequence[Begin]) -> pa.RecordBatch | None:
        """Return what was gathered, in order; None: nothing was.

        Args:
            before: changes of transactions from this number on are left out.
            transactions: by their numbers.

        Raises:
            RefusedChange: a value has no form in its column's type.
            Unreadable: a message is not one of the protocol.
        """
        count = bisect_left(self._transactions, before)
        if not count:
            return None
        messages, ordinals, numbers = self._messages[:count], self._ordinals[:count], self._transactions[:count]
        assert self._accepted is not None
        rows = _Arranged(read_rows(messages, len(self._accepted.columns)), self._key)
        commits = np.fromiter((each.commit for each in transactions), np.int64, len(transactions))
        times = np.fromiter((each.committed_at for each in transactions), np.int64, len(transactions))
        of = np.array(numbers)[rows.message]
        columns = [
            _OPS.take(pa.array(rows.ops)),
            pa.array(commits[of]),
            pa.array(np.array(ordinals)[rows.message] + rows.second),
            pa.array(times[of]).cast(pa.timestamp("us", tz="UTC")),
        ]
        return self._batch(rows, columns, of)

    def forget(self, before: int) -> None:
        """Give up changes of transactions before this number; the others are numbered anew, from 0."""
        count = bisect_left(self._transactions, before)
        del self._messages[:count], self._ordinals[:count]
        self._transactions = [number - before for number in self._transactions[count:]]

    def _batch(self, rows: _Arranged, columns: list[pa.Array], of: Indices) -> pa.RecordBatch:
        assert self._accepted is not None
        places = {column.name: number for number, column in enumerate(self._accepted.columns)}
        texts: dict[str, pa.Array] = {}
        missing: dict[str, Flags] = {}
        for name in self._followed.types:
            texts[name], left = rows.column(places[name])
            if left is not None:
                missing[name] = left
        typed = [self._typed(name, texts, of) for name in self._followed.types]
        unchanged = _names_of(missing, len(rows.ops))
        return pa.RecordBatch.from_arrays([*columns, unchanged, *typed], schema=self._schema)

    def _typed(self, name: str, texts: dict[str, pa.Array], of: Indices) -> pa.Array:
        column = self._columns[name]
        assert isinstance(column, PostgresColumn)
        wanted = self._followed.types[name]
        try:
            return parse_texts(texts[name], column, wanted)
        except RefusedText as refused:
            key = {each: str(texts[each][refused.index]) for each in self._table.primary_key if each in texts}
            why = f"{column.native} {refused.text!r} is no {wanted}"
            anew = ", and follow the table anew, since its log keeps it"
            error = value_refused(self._table, name, why, key, refused.text, anew)
            raise RefusedChange(int(of[refused.index]), error) from None

    def _accept(self, relation: Relation, columns: Columns) -> None:
        """Go on if the table is as it was before.

        What comes first may be from before the table was changed to what was discovered: then it counts what becomes of
        the values.

        Raises:
            SchemaError: it is not.
        """
        columns_there = {column.name: column for column in columns(relation)}
        there = {name: column.native for name, column in columns_there.items()}
        if relation.full_name != self._table.full_name:
            raise self._changed(f"is now called {relation.full_name}")
        if relation.oid != self.oid:
            raise self._changed("was made anew")
        if self._accepted is None:
            # The log has no generated columns; who does not read them does not miss them.
            known = [name for name in self._columns if name in self._followed.types or name in there]
            fit = {name: column for name, column in columns_there.items() if self._fits(column)}
            expected = {name: {**self._columns, **fit}[name].native for name in known}
            changed = there != expected
        else:
            expected = {column.name: self._columns[column.name].native for column in self._accepted.columns}
            changed = list(there.items()) != list(expected.items())
        if changed:
            raise self._changed(_differences(expected, there))
        identity = [column.name for column in relation.columns if column.identifies]
        key = self._table.primary_key if self._followed.key is None else self._followed.key
        if not key and len(identity) < len(relation.columns):
            key = tuple(identity)
        if lacking := [name for name in key if name not in identity]:
            raise self._changed(f"does not say any more which {', '.join(lacking)} a changed row had")
        self._key = [number for number, column in enumerate(relation.columns) if column.name in key]
        self._accepted = relation
        self._columns |= columns_there

    def _fits(self, column: PostgresColumn) -> bool:
        """Say whether a column's values are those that its dataset has, or are read as text there."""
        wanted = self._followed.types.get(column.name)
        return wanted is not None and wanted in (column.type, "string")

    def _changed(self, what: str) -> SchemaError:
        return SchemaError(
            f"{self._table.full_name} {what}: it is not the table any more that is followed",
            safe="changes up to this one were read, and this one will come again",
            next_step="change it back at the source; or follow it anew, which copies it",
            table=self._table.full_name,
        )


def _differences(expected: dict[str, str], there: dict[str, str]) -> str:
    gone = [f"has lost column {name!r}" for name in expected if name not in there]
    new = [f"has a new column {name!r} ({native})" for name, native in there.items() if name not in expected]
    other = [
        f"has {there[name]} in column {name!r}, which was {native}"
        for name, native in expected.items()
        if there.get(name, native) != native
    ]
    return ", ".join([*gone, *new, *other]) or "has its columns in another order"


def _names_of(missing: dict[str, Flags], count: int) -> pa.Array:
    """Return which columns each row lacks; null: none."""
    type_ = next(field.type for field in CHANGE_COLUMNS if field.name == UNCHANGED)
    if not missing:
        return pa.nulls(count, type_)
    flags = np.column_stack(list(missing.values()))
    names = pa.array(list(missing)).take(pa.array(np.nonzero(flags)[1]))
    counts = flags.sum(axis=1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), names, type=type_, mask=pa.array(counts == 0))


class _Arranged:
    """Changes in the order in which they are handed on: an update that changes the key takes two rows.

    Args:
        rows: one for each message.
        key: the places of the columns by which a row is known; empty: it is known by all of them.

    Attributes:
        message: the number of each change's message.
        second: whether it is the second of its message.
        ops: what happened, as the place in `_OPS`.
    """

    def __init__(self, rows: RowMessages, key: Sequence[int]) -> None:
        self._rows = rows
        count = len(rows.tags)
        self._old = _places(rows.old.rows, count)
        self._new = _places(rows.new.rows, count)
        both = np.flatnonzero((self._old >= 0) & (self._new >= 0))
        split = np.zeros(count, np.bool_)
        split[both] = self._key_changed(both, key)
        self.message = np.repeat(np.arange(count), np.where(split, 2, 1))
        self.second = np.concatenate([[False], self.message[1:] == self.message[:-1]])
        ops = np.select(
            [rows.tags == pgoutput.INSERT, rows.tags == pgoutput.UPDATE, rows.tags == pgoutput.DELETE],
            [_INSERT, _UPDATE, _DELETE],
            _TRUNCATE,
        )
        self.ops = np.where(split[self.message], np.where(self.second, _INSERT, _DELETE), ops[self.message])
        old, new = self._old[self.message], self._new[self.message]
        # The rows as they were come before those as they are; what is emptied has neither.
        self._source = np.where(self.ops == _DELETE, old, np.where(new < 0, -1, new + len(rows.old.rows)))
        self._before = np.where(self.ops == _DELETE, -1, old)

    def column(self, place: int) -> tuple[pa.Array, Flags | None]:
        """Return the texts of a column, and where it was not sent though it has a value; None: nowhere."""
        old, new = self._rows.old, self._rows.new
        texts = _take(pa.concat_arrays([old.texts[place], new.texts[place]]), self._source)
        flags = new.unchanged[place]
        if flags is None:
            return texts, None
        left = np.concatenate([np.zeros(len(old.rows), np.bool_), flags])[self._source] & (self._source >= 0)
        # What is large and stays is told with the old row, if that is told whole.
        before = _take(old.texts[place], self._before)
        texts = pc.if_else(pa.array(left), before, texts)
        left &= ~np.asarray(before.is_valid())
        return texts, left if left.any() else None

    def _key_changed(self, messages: Indices, key: Sequence[int]) -> Flags:
        """Return for which updates the row before is another one by its key than that after."""
        changed = np.full(len(messages), not key)
        for place in key:
            before = _take(self._rows.old.texts[place], self._old[messages])
            after = _take(self._rows.new.texts[place], self._new[messages])
            differs = ~np.asarray(pc.fill_null(pc.equal(before, after), False))
            flags = self._rows.new.unchanged[place]
            changed |= differs if flags is None else differs & ~flags[self._new[messages]]
        return changed


def _places(rows: Indices, count: int) -> Indices:
    """Return by message where its row is among `rows`; -1: nowhere."""
    places = np.full(count, -1, np.int64)
    places[rows] = np.arange(len(rows))
    return places


def _take(values: pa.Array, places: Indices) -> pa.Array:
    """Return the values of these places; null where the place is -1."""
    absent = places < 0
    return values.take(pa.array(np.where(absent, 0, places), mask=absent if absent.any() else None))
