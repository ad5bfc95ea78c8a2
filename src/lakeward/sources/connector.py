"""What a source must offer: the tables that it has, and streams of their rows in one snapshot of it.

A table is whatever has rows with the same columns: one of a database, or the files of a folder.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pydantic import BaseModel

from lakeward.control.records import FileRead
from lakeward.sources.allowed import Allowed
from lakeward.sources.file_set import RejectsOf

Position = Mapping[str, Any]
"""How far a table was read, as JSON. Only the connector that made it understands it."""

FULL, CHANGED, NEW = "full", "changed", "new"
"""What is read: every row; those written since a position; those that came since, each exactly once."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of a table.

    Args:
        name: as the source has it.
        native: the source's own text of its type.
        type: the logical type's text; None: there is none.
        refused: why there is none.
    """

    name: str
    native: str
    type: str | None
    refused: str | None = None


@dataclass(frozen=True)
class SourceTable:
    """A table, or what can be read like one.

    Args:
        schema, name: where it is; the schema is empty where the source has none.
        columns: in the order of the source.
        primary_key: names of the key columns; empty: it has none.
        rows: how many the source believes there are; None: not known.
        followed: whether what changed in it can be told; else it can only be read whole.
        typed: whether the source says which columns it has, and of which types; else they are those of its dataset, and
            of one that is made what `Connector.described` finds.
    """

    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    primary_key: tuple[str, ...]
    rows: int | None
    followed: bool
    typed: bool = True

    @property
    def full_name(self) -> str:
        """The schema and the name, by which it is chosen."""
        return f"{self.schema}.{self.name}" if self.schema else self.name


@dataclass(frozen=True)
class Cursor:
    """A column whose values grow, by which rows are found that may be new.

    Args:
        column: its name.
        lag: how much a row's value may lie behind the highest one when the row becomes visible: all from there on are
            read again. As text; what it can be depends on the column.
    """

    column: str
    lag: str


@dataclass(frozen=True)
class ReadWindow:
    """Which rows of a table.

    Args:
        table: which one, as it was discovered.
        types: the logical type's text of every column, in the order that the batches shall have: the column's own, or
            `string` for what the source prints.
        what: `FULL`, `CHANGED` or `NEW`.
        after: what was read before; None: nothing.
        matched: whether the reader knows a row again by its key, so that one may come that it has.
        seen: returns the files, by their paths, whose rows were read before; none where the source is none of files.
        cursor: how new rows are found; None: the source's own way. Only with `matched`, and of a connector with
            `cursors`.
        text: columns of type `string` that are text by choice, whatever kinds of values the source has.
        required: columns in which a row must have a value; looked at with `rejects` alone.
        rejects: returns what is told the rows of a file that can't be taken, which are left out; None: the first one
            ends the read. Only of a connector with `rejects`.
    """

    table: SourceTable
    types: Mapping[str, str]
    what: str = FULL
    after: Position | None = None
    matched: bool = False
    seen: Callable[[], Mapping[str, FileRead]] = dict
    cursor: Cursor | None = None
    text: Collection[str] = ()
    required: Collection[str] = ()
    rejects: RejectsOf | None = None


@dataclass(frozen=True)
class TableRead:
    """Rows, and the position that holds once all of them are written.

    Args:
        rows: the stream.
        position: None: what comes after them can't be told.
        follows: whether the window's `after` is a position of the same table, on the same server.
        files: once the rows are read, returns the files that they were of, which decide records with them.
        touched: files that were read before and are the same, whose state has to be recorded anew.
        left: once the rows are read, returns what was left for the next read, in words.
    """

    rows: pa.RecordBatchReader
    position: Position | None
    follows: bool
    files: Callable[[], Sequence[FileRead]] = tuple
    touched: Sequence[FileRead] = ()
    left: Callable[[], Sequence[str]] = tuple


class Snapshot(ABC):
    """One moment of a source. Streams are read one after the other, each to its end or given up with the snapshot."""

    @abstractmethod
    def read(self, window: ReadWindow) -> TableRead:
        """Stream rows.

        Raises:
            SourceError: the source does not answer, or the position is not one of this table.
            ValueRefused: (while reading) a value has no form in the column's logical type, with key, column and value.
        """

    def beside(self) -> AbstractContextManager[Snapshot] | None:
        """Return a context that holds another snapshot of the same moment, which can be read from at the same time.

        It ends before this one does, which is not read from meanwhile. None, unless a connector has something better:
        the source has no way to do that.

        Raises:
            SourceError: it has, and refuses to go it.
        """
        return None

    def give_up(self) -> bool:
        """Let the stream that another thread reads end soon, by an error, and say whether it will.

        False, unless a connector has something better: it goes on to its end.
        """
        return False


class Connector(ABC):
    """One source. Nothing is connected before it is asked for something, and nothing in it is ever changed."""

    name: ClassVar[str]
    options: ClassVar[type[BaseModel]]
    cursors: ClassVar[bool] = False
    """Whether a window may have a cursor."""
    rejects: ClassVar[bool] = False
    """Whether a window may say what becomes of rows that can't be taken."""

    @classmethod
    @abstractmethod
    def made(cls, options: BaseModel, allowed: Allowed) -> Connector:
        """Return the source of these options.

        Args:
            options: an instance of `options`.
            allowed: what may be reached; resolves references, and is asked before anything is opened.

        Raises:
            SettingsError: they can't be meant; the text of a secret is never repeated.
            NotAllowed: they lead to what may not be reached.
        """

    @abstractmethod
    def discover(self) -> list[SourceTable]:
        """Return every table that can be read, by name.

        Raises:
            SourceError: the source does not answer.
        """

    def about(self, table: SourceTable) -> str:
        """Return what else a person is told of a table, by looking at it; empty: nothing.

        Raises:
            UsageError, SourceError: it can't be looked at.
        """
        return ""

    def described(
        self,
        table: SourceTable,
        columns: Mapping[str, str],
        told: Callable[[str], None],
        text: Collection[str] = (),
        rejects: RejectsOf | None = None,
    ) -> SourceTable:
        """Return a table with its columns, where the source has to be read for them.

        Args:
            table: as it was discovered.
            columns: the logical types' texts that a person declared; those of the others are to be found.
            told: is told what is read.
            text: columns that are text by choice.
            rejects: returns what is told the rows of a file that can't be read; None: the first one ends it.

        Raises:
            UsageError: there is nothing to read yet.
            SourceFileError, ColumnMismatch: what is read is not what it claims to be.
        """
        return table

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Return a context that holds one moment of the source."""

    @abstractmethod
    def close(self) -> None:
        """Give up connections; repeating it does nothing."""
