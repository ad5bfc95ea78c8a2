"""Finds the rows in which two arms differ: by digests of ever smaller parts on both, side by side, then row by row.

A part is a range of `__row_index`. Only parts whose digests differ are cut further, and of those no more than are worth
it: work and memory are bounded however much differs, and then the count is a lower bound.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import duckdb

from lakeward.errors import StorageError
from lakeward.storage.arm import Scan
from lakeward.storage.duck import SOURCE, Duck, given
from lakeward.storage.filters import Filter, quote_identifier, within
from lakeward.storage.pairing import FIRST, SAMPLES, SECOND, Sample, count_keys, pair, paired, settle_keys
from lakeward.storage.routing import Place
from lakeward.storage.table import TableRef
from lakeward.storage.unreadable import unreadable
from lakeward.types.digest import EMPTY, Digest
from lakeward.types.schema import Schema

T = TypeVar("T")

PARTS = 1 << 10
"""The first look cuts the dataset into about so many parts."""

FOLLOWED = 1 << 7
"""At most so many parts that differ are looked into."""

LEAF_ROWS = 1 << 13
"""So few rows are compared one by one."""


@dataclass(frozen=True)
class Finding:
    """What differs between two arms.

    Args:
        rows: how many rows differ, are missing on one arm, or are there twice; at least so many unless `exact`.
        exact: every part that differs was looked into.
        columns: of the rows that were compared one by one, how many differ in each column.
        missing: of those, how many each arm lacks.
        samples: some of them, with what each arm has.
    """

    rows: int
    exact: bool
    columns: Mapping[str, int]
    missing: Mapping[str, int]
    samples: tuple[Sample, ...]

    def to_json(self) -> dict[str, object]:
        """Return it as the control plane keeps it and `--output json` prints it."""
        return {
            "rows": self.rows,
            "exact": self.exact,
            "columns": dict(self.columns),
            "missing": dict(self.missing),
            "samples": [sample.to_json() for sample in self.samples],
        }


class Finder:
    """Finds rows that differ, for one workspace.

    Args:
        duck: compares rows, within its memory limit.
    """

    def __init__(self, duck: Duck) -> None:
        self._duck = duck

    def find(self, table: TableRef, places: tuple[Place, Place], next_row_index: int) -> Finding:
        """Find the rows of one version that are not the same on both arms, by the columns of `table`.

        Args:
            table: the dataset; columns that its schema lacks are not looked at.
            places: the arms, and how each holds the version.
            next_row_index: the position that the next row would get.

        Raises:
            StorageError: an arm can't be read at all.
        """
        spans, left_out = self._narrow(table, places, next_row_index)
        if not spans:
            return Finding(0, True, {}, {}, ())
        found = self._compared(table, places, spans)
        return replace(found, rows=found.rows + left_out, exact=found.exact and left_out == 0)

    def _narrow(
        self, table: TableRef, places: tuple[Place, Place], next_row_index: int
    ) -> tuple[list[tuple[int, int]], int]:
        """Return ranges that hold few rows and differ, and at least how many rows differ outside of them."""
        # Powers of two, so that a smaller part lies in one larger part.
        shift = max(0, (max(next_row_index, 1) - 1).bit_length() - (PARTS.bit_length() - 1))
        step = (PARTS // FOLLOWED).bit_length() - 1
        where: Filter | None = None
        left_out = 0
        while True:
            width = 1 << shift
            first, second = both(places, lambda place: _parts(place, table, width, where))  # noqa: B023  called at once
            differing = sorted(part for part in {*first, *second} if first.get(part) != second.get(part))
            counts = {part: [side.get(part, EMPTY).count for side in (first, second)] for part in differing}
            followed = differing[:FOLLOWED]
            left_out += sum(max(1, abs(counts[part][0] - counts[part][1])) for part in differing[FOLLOWED:])
            spans = [(part * width, (part + 1) * width) for part in followed]
            if not spans or shift == 0 or sum(max(counts[part]) for part in followed) <= LEAF_ROWS:
                return spans, left_out
            where, shift = within(spans), max(0, shift - step)

    def _compared(self, table: TableRef, places: tuple[Place, Place], spans: Sequence[tuple[int, int]]) -> Finding:
        """Compare the rows of some positions one by one, in DuckDB, which spills what it can't hold."""
        unread: list[Sample] = []
        with self._duck.session() as connection:
            for name, place in zip((FIRST, SECOND), places, strict=True):
                table = _lay_down(connection, name, table, place, spans, unread)
            if pair(connection, table.schema):
                for name, place in zip((FIRST, SECOND), places, strict=True):
                    keys = place.arm.scan(table, place.version, Scan(table.schema.primary_key))
                    count_keys(connection, table.schema, keys, name)
                settle_keys(connection, table.schema)
            found = paired(connection, table.schema, (places[0].arm.name, places[1].arm.name))
        columns = {**found.columns, **{each.column or "": 1 for each in unread}}
        # What can't be read may be in rows that differ otherwise, too.
        rows = max(found.rows, len(unread))
        return Finding(rows, not unread, columns, found.missing, (*unread, *found.samples)[:SAMPLES])


def _lay_down(
    connection: duckdb.DuckDBPyConnection,
    name: str,
    table: TableRef,
    place: Place,
    spans: Sequence[tuple[int, int]],
    unread: list[Sample],
) -> TableRef:
    """Make a table of an arm's rows. A column that can't be read is told of, and left out of the table returned."""
    while True:
        rows = place.arm.scan(table, place.version, Scan(table.schema.names, identity=True, where=within(spans)))
        try:
            with given(connection, {SOURCE: rows}):
                select = f"SELECT * FROM {quote_identifier(SOURCE)}"
                connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {select}").fetchall()
            return table
        except StorageError as error:
            column = error.fields.get("column")
            if not isinstance(column, str) or column not in table.schema.names:
                raise
            unread.append(unreadable(place, table, column, (spans[0][0], spans[-1][1])))
            table = without(table, [column])


def without(table: TableRef, columns: Collection[str]) -> TableRef:
    """Return the dataset without some columns; if one of the key is among them, without a key."""
    schema = table.schema
    key = () if set(columns) & set(schema.primary_key) else schema.primary_key
    return replace(table, schema=Schema(tuple(column for column in schema.columns if column.name not in columns), key))


def _parts(place: Place, table: TableRef, width: int, where: Filter | None) -> dict[int, Digest]:
    return place.arm.part_digests(table, place.version, width, where)


def both(places: Sequence[Place], ask: Callable[[Place], T]) -> list[T]:
    """Ask all arms at once, and return their answers in the order of the places."""
    if not places:
        return []
    with ThreadPoolExecutor(len(places), thread_name_prefix="lakeward-compare") as pool:
        return list(pool.map(ask, places))
