"""Hypothesis strategies for keyed writes: schemas with keys of all kinds, and batches whose keys meet each other."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from lakeward.types.schema import OPS

UTC = dt.UTC
NAN = float("nan")

KEYS: Mapping[str, Sequence[Any]] = {
    "long": [0, 1, 2, 3, -(2**63), 2**53 + 1],
    "int": [0, 1, 2, 3, -(2**31)],
    "string": ["", "a", "A", "a ", "é", "e\u0301", "😀", "null", "'", "\\"],
    "decimal(9,2)": [Decimal("0.00"), Decimal("1.00"), Decimal("0.10"), Decimal("-0.01"), Decimal("9999999.99")],
    "date": [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(1969, 12, 31), dt.date(9999, 12, 31)],
    "time": [dt.time(0), dt.time(0, 0, 0, 1), dt.time(23, 59, 59, 999_999)],
    "timestamp": [dt.datetime(1970, 1, 1), dt.datetime(1969, 12, 31, 23, 59, 59, 999_999), dt.datetime(9999, 1, 1)],
    "timestamptz": [dt.datetime(1970, 1, 1, tzinfo=UTC), dt.datetime(2024, 3, 31, 1, 30, tzinfo=UTC)],
    "uuid": [uuid.UUID(int=number) for number in (0, 1, 1 << 127, 2**128 - 1)],
    "binary": [b"", b"\0", b"a", b"\xff"],
    "boolean": [True, False],
}
"""Values of key columns, by type."""

VALUES: Mapping[str, Sequence[Any]] = {
    "double": [None, NAN, 0.0, -0.0, 1.5, float("-inf"), 0.1 + 0.2],
    "string": [None, "", "a", "A", "\x01", "x" * 300],
    "list<int>": [None, [], [None], [1], [1, 2], [2, 1]],
    "struct<x: double, y: list<string>>": [
        None,
        {"x": None, "y": None},
        {"x": NAN, "y": []},
        {"x": -0.0, "y": [""]},
        {"x": 0.0, "y": [None]},
    ],
    "decimal(20,3)": [None, Decimal("0.000"), Decimal("1.500"), Decimal("-99999999999999999.999")],
    "json": [None, "null", "{}", '{"a": 1}', '{"a": null}', "[1, 2]", '"1"', "1"],
    "timestamptz": [None, dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(2024, 1, 1, 0, 0, 0, 1, tzinfo=UTC)],
    "list<struct<z: date>>": [None, [], [None], [{"z": None}], [{"z": dt.date(2024, 2, 29)}]],
    "binary": [None, b"", b"\0"],
    "boolean": [None, True, False],
}
"""Values of the other columns, by type: those that are easily taken for each other."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Shape:
    """The columns of a dataset, by name, and which of them are the key."""

    columns: Mapping[str, str]
    primary_key: tuple[str, ...]

    @property
    def others(self) -> tuple[str, ...]:
        """The columns that are not in the key."""
        return tuple(name for name in self.columns if name not in self.primary_key)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """A key of one to three columns, and one to four others, in any order."""
    keys = draw(st.lists(st.sampled_from(sorted(KEYS)), min_size=1, max_size=3, unique=True))
    values = draw(st.lists(st.sampled_from(sorted(VALUES)), min_size=1, max_size=4, unique=True))
    named = [(f"k{number}", type_) for number, type_ in enumerate(keys)]
    ordered = draw(st.permutations([*named, *((f"v{number}", type_) for number, type_ in enumerate(values))]))
    return Shape(dict(ordered), tuple(name for name, _ in draw(st.permutations(named))))


def keys(shape: Shape) -> st.SearchStrategy[Row]:
    """A key, as a row of its columns."""
    return st.fixed_dictionaries({name: st.sampled_from(KEYS[shape.columns[name]]) for name in shape.primary_key})


def rows(shape: Shape, *, most: int = 6) -> st.SearchStrategy[list[Row]]:
    """Rows, of which no two have the same key."""
    others = {name: st.sampled_from(VALUES[shape.columns[name]]) for name in shape.others}
    row = st.tuples(keys(shape), st.fixed_dictionaries(others)).map(lambda parts: {**parts[0], **parts[1]})
    return st.lists(row, max_size=most, unique_by=lambda each: tuple(each[name] for name in shape.primary_key))


def batches(shape: Shape, verb: str, *, most: int = 6) -> st.SearchStrategy[list[Row]]:
    """Rows as a verb takes them."""
    given = rows(shape, most=most)
    if verb == "delete":
        return given.map(lambda each: [{name: row[name] for name in shape.primary_key} for row in each])
    if verb == "changes":
        return given.flatmap(lambda each: st.tuples(*map(_change, each)).map(list))
    return given


def _change(row: Row) -> st.SearchStrategy[Row]:
    return st.sampled_from(OPS).map(lambda operation: {**row, "__op": operation})


SPOILT = ("a key twice", "a null key", "no column", "a column too much", "an unknown operation")
"""What may be wrong with a batch."""


def spoilt(given: Sequence[Row], how: str, shape: Shape) -> list[Row]:
    """Return a batch of at least one row with something wrong at its end."""
    bad = dict(given[0])
    if how == "a null key":
        bad[shape.primary_key[-1]] = None
    elif how == "no column":
        del bad[shape.primary_key[0]]
    elif how == "a column too much":
        bad["more"] = 1
    elif how == "an unknown operation" and "__op" in bad:
        bad["__op"] = "upsert"
    return [*given, bad]


def plain(value: Any) -> Any:
    """Return a value as every reader should have it, so that two of them can be compared by their `repr`."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value
