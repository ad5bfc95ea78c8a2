"""What the older and the newer of two versions have that the other one has not: rows as DuckDB reads them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeward.storage.filters import quote_identifier, quote_list

PLACE = "place\x01"
"""In the rows of a `Side`: a number for the part of the arm that a row is in. No column can have this name."""


@dataclass(frozen=True)
class Relation:
    """A DuckDB query, and the Arrow data that it reads by name.

    Args:
        sql: the query.
        tables: the data. A stream among it can be read once.
        streamed: the rows come from a stream, of which DuckDB does not know how long it is.
    """

    sql: str
    tables: Mapping[str, pa.Table | pa.RecordBatchReader]
    streamed: bool = False


class Side(ABC):
    """Rows of one of two versions: at least all those that the other one has not, or has in another `__version`."""

    @abstractmethod
    def rows(self, columns: Sequence[str], places: Sequence[int] | None = None) -> Relation:
        """Return the rows, to be read once. It can be asked for again.

        Args:
            columns: business and identity columns, which the relation has under their names, besides `PLACE`.
            places: only rows of these places are wanted; others may come, too. None: all.
        """


class StreamedSide(Side):
    """Rows that a stream brings.

    Args:
        name: what the relation calls the stream: another one for each of two sides.
        opened: opens a stream of at least the columns that it is told.
    """

    def __init__(self, name: str, opened: Callable[[Sequence[str]], pa.RecordBatchReader]) -> None:
        self._name = name
        self._opened = opened

    def rows(self, columns: Sequence[str], places: Sequence[int] | None = None) -> Relation:
        """See `Side`. All rows are in one place."""
        query = f'SELECT {quote_list(columns)}, 0 AS "{PLACE}" FROM {quote_identifier(self._name)}'
        return Relation(query, {self._name: self._opened(columns)}, streamed=True)


class Difference(ABC):
    """What a version has become since another one of the same dataset, by `__row_id` and `__version`.

    Args:
        rows_gone: rows of the older version that the newer one has not, or has written anew.
        rows_come: rows of the newer version that the older one has not, or had otherwise.
    """

    rows_gone: int
    rows_come: int

    @abstractmethod
    def gone(self) -> pa.RecordBatchReader:
        """Stream the rows that are gone: `__row_id`, and the columns of the primary key, if there is one."""

    @abstractmethod
    def come(self) -> pa.RecordBatchReader:
        """Stream the rows that have come: the business columns with the identity columns behind.

        Not while `gone` is still being read.
        """
