"""What a source offers that tells what was changed in it as it is committed: a log of changes, read in commit order.

Rows of changes come as Arrow batches whose first columns are those of `CHANGE_COLUMNS`; the table's own follow, typed.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa
from pydantic import BaseModel

from lakeward.sources.allowed import Allowed
from lakeward.sources.connector import Position, Snapshot, SourceTable

OP, COMMIT, ORDINAL, COMMITTED_AT, UNCHANGED = "__op", "__commit", "__ordinal", "__committed_at", "__unchanged"
"""What happened; the transaction's place in commit order; the change's place in the log; when; what was not sent."""

INSERT, UPDATE, DELETE, TRUNCATE = "insert", "update", "delete", "truncate"
"""What happens to a row, or to all. An update that changes the key comes as a delete and an insert, as all of a table
without a key do."""

CHANGE_COLUMNS = (
    pa.field(OP, pa.string(), nullable=False),
    pa.field(COMMIT, pa.int64(), nullable=False),
    pa.field(ORDINAL, pa.int64(), nullable=False),
    pa.field(COMMITTED_AT, pa.timestamp("us", tz="UTC"), nullable=False),
    pa.field(UNCHANGED, pa.list_(pa.string())),
)


@dataclass(frozen=True)
class FollowedTable:
    """A table whose changes are read.

    Args:
        table: as it was discovered.
        types: the logical type's text of every column, in the order that the batches shall have.
        after: changes up to this position are left out, since they are here already.
        key: the columns by which the reader knows a row again; None: those of the table.
    """

    table: SourceTable
    types: Mapping[str, str]
    after: Position
    key: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Changes:
    """A part of the log.

    Args:
        rows: by the full name of the table, in the order of the log; `COMMIT` and `ORDINAL` together order those of all
            tables, and come again as they were. Of a `delete`, columns that are not sent are null; a `truncate` has
            only nulls. An `insert` that has `UNCHANGED` columns is an update that changed the key: their values are
            those of the row that the `delete` directly before it removes.
        upto: what was read so far is whole transactions, up to this position; None: the rows are part of one whose end
            is still to come, and nothing after the last position may be made visible yet.
    """

    upto: Position | None
    rows: Mapping[str, pa.RecordBatch] = field(default_factory=dict)


@dataclass(frozen=True)
class LogState:
    """How the source keeps the log for us.

    Args:
        name: what it is called there.
        tables: full names of those whose changes it has.
        lag_bytes: how much of its log the source keeps because of us.
        active: whether somebody reads it now.
        lost: the source has thrown away what was not read yet; only a new copy helps.
    """

    name: str
    tables: tuple[str, ...]
    lag_bytes: int
    active: bool
    lost: bool


class ChangeLog(ABC):
    """The log of one source, under one name there. It costs the source space as long as it is not read: see `drop`.

    Discovery finds it: a module in `lakeward/sources/change_logs`, with the `name` of the connector that it is for.
    """

    name: ClassVar[str]

    @classmethod
    @abstractmethod
    def made(cls, options: BaseModel, allowed: Allowed, label: str) -> ChangeLog:
        """Return the log of a source.

        Args:
            options: an instance of the connector's `options`.
            allowed: what may be reached; resolves references, and is asked before anything is opened.
            label: distinguishes it from logs of others at the source: up to 40 lower-case letters, digits and `_`.

        Raises:
            SettingsError: the options can't be meant; the text of a secret is never repeated.
            NotAllowed: they lead to what may not be reached.
        """

    @abstractmethod
    def state(self) -> LogState | None:
        """Say how it stands; None: it was not begun, or was dropped.

        Raises:
            SourceError: the source does not answer.
        """

    @abstractmethod
    def begin(self, tables: Sequence[SourceTable]) -> AbstractContextManager[tuple[Snapshot, Position]]:
        """Begin to log these tables, or these as well, and hold the moment after which the log has each change of them.

        Until the context ends, the snapshot shows that moment. Tables that are logged already are no error: then, too,
        every change after the position is in the log, and none before it is missing from the snapshot.

        Raises:
            SourceError: the source is not set up to log changes, with what to set; or can't be asked.
            SchemaError: a table has nothing by which a changed row can be told from others.
        """

    @abstractmethod
    def follow(self, tables: Sequence[FollowedTable], wait_seconds: float = 1.0) -> Iterator[Changes]:
        """Read on from what was acknowledged, in the order in which transactions were committed; without end.

        Batches are bounded in bytes, also within one large transaction. Where nothing happens, a `Changes` without rows
        comes all `wait_seconds`, so that the caller can acknowledge, or stop. Closing the iterator gives up reading.

        Raises:
            SourceError: the source went away, or somebody else reads; what was not acknowledged will come again.
            SchemaError: a table has not the columns any more that it had, with their names.
            ValueRefused: a value has no form in its column's type, with table, key, column and value.
        """

    @abstractmethod
    def reaches(self, position: Position, other: Position) -> bool:
        """Say whether whoever read up to `position` has read up to `other`, too.

        A table that was added later begins behind what is read of the others: it keeps its own `after` as long as
        `upto` does not reach that.
        """

    @abstractmethod
    def end(self) -> Position:
        """Return up to where the source has logged, whatever was read of it.

        Raises:
            SourceError: the source does not answer.
        """

    @abstractmethod
    def acknowledge(self, position: Position) -> None:
        """Let the source forget the log up to here; to be called when all of it is durable. Sent by `follow`."""

    @abstractmethod
    def forget(self, tables: Sequence[str]) -> None:
        """Log these tables no more; what was not read of them is lost.

        Args:
            tables: full names.
        """

    @abstractmethod
    def drop(self) -> None:
        """Let the source give up the log, and what it keeps for us; repeating it does nothing."""

    @abstractmethod
    def close(self) -> None:
        """Give up connections; the log stays. Repeating it does nothing."""
