"""What a source must offer: the tables that it has, and streams of their rows in one snapshot of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar

import pyarrow as pa
from pydantic import BaseModel

from lakeward.sources.allowed import Allowed

Position = Mapping[str, Any]
"""How far a table was read, as JSON. Only the connector that made it understands it."""

FULL, CHANGED, NEW = "full", "changed", "new"
"""What is read: every row; those written since a position; those that came since, each exactly once."""


@dataclass(frozen=True)
class SourceColumn:
    """A column of a table.

    Args:
        name: as the database has it.
        native: the database's own text of its type.
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
        schema, name: where it is.
        columns: in the order of the database.
        primary_key: names of the key columns; empty: it has none.
        rows: how many the database believes there are; None: not known.
        followed: whether what changed in it can be told; else it can only be read whole.
    """

    schema: str
    name: str
    columns: tuple[SourceColumn, ...]
    primary_key: tuple[str, ...]
    rows: int | None
    followed: bool

    @property
    def full_name(self) -> str:
        """The schema and the name, by which it is chosen."""
        return f"{self.schema}.{self.name}"


@dataclass(frozen=True)
class ReadWindow:
    """Which rows of a table.

    Args:
        table: which one, as it was discovered.
        types: the logical type's text of every column, in the order that the batches shall have: the column's own, or
            `string` for what the database prints.
        what: `FULL`, `CHANGED` or `NEW`.
        after: what was read before; None: nothing.
        matched: whether the reader knows a row again by its key, so that one may come that it has.
    """

    table: SourceTable
    types: Mapping[str, str]
    what: str = FULL
    after: Position | None = None
    matched: bool = False


@dataclass(frozen=True)
class TableRead:
    """Rows, and the position that holds once all of them are written.

    Args:
        rows: the stream.
        position: None: what comes after them can't be told.
        follows: whether the window's `after` is a position of the same table, on the same server.
    """

    rows: pa.RecordBatchReader
    position: Position | None
    follows: bool


class Snapshot(ABC):
    """One moment of a source. Streams are read one after the other, each to its end or given up with the snapshot."""

    @abstractmethod
    def read(self, window: ReadWindow) -> TableRead:
        """Stream rows.

        Raises:
            SourceError: the database does not answer, or the position is not one of this table.
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

    @classmethod
    @abstractmethod
    def made(cls, options: BaseModel, allowed: Allowed) -> Connector:
        """Return the database of these options.

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
            SourceError: the database does not answer.
        """

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Return a context that holds one moment of the database."""

    @abstractmethod
    def close(self) -> None:
        """Give up connections; repeating it does nothing."""
