"""Which rows of a table may be new since it was last read, told by a column whose values grow; and how far they go.

For what has no `xmin`, as views and foreign tables, or where a scan of the whole table would take too long. All rows
from the highest value that was seen on, less a lag, are read again: whoever reads knows them again by their key. What
a column says nothing of is read each time: nulls, NaN and infinities, which are no place in any order of time.

A value that lies in the future, by the server's clock, would hide all rows until then, so it does not count.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

from psycopg import sql

from lakeward.errors import UsageError
from lakeward.sources.connector import Cursor, Position, ReadWindow
from lakeward.sources.connectors.postgres_types import PostgresType

_ZONES = "interval '14 hours'"
"""So far ahead of UTC a clock on the wall can be."""

_NUMBERS = {
    "int2": sql.SQL("true"),
    "int4": sql.SQL("true"),
    "int8": sql.SQL("true"),
    # As text: before version 14, numeric has no infinity to compare with.
    "numeric": sql.SQL("CAST({} AS text) NOT IN ('NaN', 'Infinity', '-Infinity')"),
}
"""Types of numbers, and which of their values have a place in their order."""

_NOW = {
    "timestamptz": sql.SQL("now()"),
    "timestamp": sql.SQL(f"now() AT TIME ZONE 'UTC' + {_ZONES}"),
    "date": sql.SQL(f"CAST(now() AT TIME ZONE 'UTC' + {_ZONES} AS date)"),
}
"""Types of times, and what is now at the latest."""

_LAGS = {
    True: (re.compile(r"\d+"), "a whole number, as 1000"),
    False: (re.compile(r"0|\d+ (second|minute|hour|day|week)s?"), "0, or as '10 minutes'"),
}


@dataclass(frozen=True)
class CursorPosition:
    """How far a table was read.

    Args:
        cursor: the column.
        type: the server's name of its type.
        value: the highest that was seen, as the server prints it; None: there was none.
    """

    cursor: str
    type: str
    value: str | None

    def to_json(self) -> dict[str, Any]:
        """Return it as it is stored."""
        return asdict(self)


class CursorRows:
    """The rows of a window by its cursor.

    Args:
        window: has a cursor.
        cursor: it.
        of: the type of that column.

    Raises:
        UsageError: the column's type has no such order, or the lag is none of it.
    """

    def __init__(self, window: ReadWindow, cursor: Cursor, of: PostgresType) -> None:
        number = of.name in _NUMBERS
        if not number and of.name not in _NOW:
            raise _refused(
                window, f"column {cursor.column!r} is {of.name}, which can't be a cursor", "a number or time"
            )
        form, example = _LAGS[number]
        if not form.fullmatch(cursor.lag):
            raise _refused(window, f"{cursor.lag!r} is no lag of column {cursor.column!r}", example)
        self._window = window
        self._cursor = cursor
        self._type = of.name
        self._column = sql.Identifier(cursor.column)
        self._after = _same(window.after, cursor, of.name)

    def where(self) -> sql.Composable:
        """Return the condition of the rows that are to be read."""
        if self._after is None or self._after.value is None:
            return sql.SQL("true")
        return sql.SQL("({column} >= {low} OR {column} IS NULL OR NOT ({finite}))").format(
            column=self._column, low=self._low(self._after.value), finite=self._finite()
        )

    def highest(self) -> sql.Composable:
        """Return the query of the value up to which whoever reads now has read; to be asked before the rows are."""
        table = sql.Identifier(self._window.table.schema, self._window.table.name)
        counts = self._finite()
        now = _NOW.get(self._type)
        if now is not None:
            counts = sql.SQL("{} AND {} <= {}").format(counts, self._column, now)
        found = sql.SQL("max({}) FILTER (WHERE {})").format(self._column, counts)
        if self._after is not None and self._after.value is not None:
            before = self._cast(self._after.value)
            # A clock may have been set back since.
            before = before if now is None else sql.SQL("least({}, {})").format(before, now)
            found = sql.SQL("greatest({}, {})").format(found, before)
        return sql.SQL("SELECT CAST({} AS text) AS value FROM {} WHERE {}").format(found, table, self.where())

    def position(self, value: str | None) -> CursorPosition:
        """Return the position of a value that `highest` found."""
        return CursorPosition(self._cursor.column, self._type, value)

    @property
    def follows(self) -> bool:
        """Whether the window's `after` is by the same cursor."""
        return self._after is not None

    def _finite(self) -> sql.Composable:
        if self._type in _NOW:
            return sql.SQL("isfinite({})").format(self._column)
        return _NUMBERS[self._type].format(self._column)

    def _low(self, value: str) -> sql.Composable:
        of = "interval" if self._type in _NOW else "numeric" if self._type == "numeric" else "bigint"
        return sql.SQL("{} - CAST({} AS {})").format(self._cast(value), sql.Literal(self._cursor.lag), sql.SQL(of))

    def _cast(self, value: str) -> sql.Composable:
        return sql.SQL("CAST({} AS {})").format(sql.Literal(value), sql.Identifier("pg_catalog", self._type))


def _same(after: Position | None, cursor: Cursor, type_: str) -> CursorPosition | None:
    """Return the position of the last read if it was by this cursor; else everything is to be read."""
    if after is None or (after.get("cursor"), after.get("type")) != (cursor.column, type_):
        return None
    return CursorPosition(**after)


def _refused(window: ReadWindow, what: str, right: str) -> UsageError:
    return UsageError(
        f"{window.table.full_name}: {what}",
        safe="nothing was written",
        next_step=f"it has to be {right}",
        table=window.table.full_name,
    )
