"""Proposes the type of a column of a sheet from every value of it.

Values of two kinds in one column are refused with both cells: a type that holds both has to be somebody's choice. A
text stays text, however much it looks like a number or a date.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime, time

from lakeward.sources.formats.excel_numbers import EXACT, Elapsed
from lakeward.sources.formats.excel_values import Unfit, check_values

_KINDS: dict[type, str] = {
    int: "a number",
    float: "a number",
    bool: "a boolean",
    str: "a text",
    date: "a date",
    datetime: "a date",
    time: "a time",
    Elapsed: "a time past 24 hours",
}
_TYPES: dict[type, str] = {bool: "boolean", str: "string", date: "date", time: "time", Elapsed: "string"}
_MIN_LONG, _MAX_LONG = -(2**63), 2**63 - 1


class ExcelInference:
    """The proposal for one column, updated batch by batch."""

    def __init__(self) -> None:
        self._first: tuple[object, str] | None = None
        self._types: set[type] = set()
        self._least = self._largest = 0
        self._double: str | None = None
        self._no_double: str | None = None

    @property
    def type_text(self) -> str:
        """The logical type text that holds every value seen; `string` where there was none."""
        if self._first is None:
            return "string"
        if float in self._types:
            return "double"
        if int in self._types:
            return "long" if self._least >= _MIN_LONG and self._largest <= _MAX_LONG else "decimal(38,0)"
        return "timestamp" if datetime in self._types else _TYPES[type(self._first[0])]

    def add(self, values: Sequence[object], place: Callable[[int], str]) -> None:
        """Take the next values into account; nulls say nothing.

        Args:
            values: of cells.
            place: returns the cell that the value at an index (from 0) is from.

        Raises:
            Unfit: a value is of another kind than the first one, or no value of any.
        """
        check_values(values)
        types = set(map(type, values)) - {type(None)}
        if not types:
            return
        if self._first is None:
            index = next(index for index, value in enumerate(values) if value is not None)
            self._first = (values[index], place(index))
        first, first_place = self._first
        kind = _KINDS[type(first)]
        if any(_KINDS[type_] != kind for type_ in types):
            index = next(i for i, value in enumerate(values) if value is not None and _KINDS[type(value)] != kind)
            raise Unfit(index, values[index], f"is {_KINDS[type(values[index])]}, and {first_place} has {kind}")
        self._types |= types
        if int in types:
            whole = [value for value in values if type(value) is int]
            self._least, self._largest = min(self._least, *whole), max(self._largest, *whole)
        if kind == "a number" and (float in types or max(-self._least, self._largest) > EXACT):
            self._check_digits(values, place)

    def _check_digits(self, values: Sequence[object], place: Callable[[int], str]) -> None:
        """Refuse a number that needs a double in a column with a whole number that no double holds."""
        for index, value in enumerate(values):
            if type(value) is float and self._double is None:
                self._double, other, what = place(index), self._no_double, "needs a double"
            elif type(value) is int and self._no_double is None and abs(value) > EXACT and int(float(value)) != value:
                self._no_double, other, what = place(index), self._double, "has more digits than a double"
            else:
                continue
            if other is not None:
                reason = "has more digits than a double holds" if type(value) is float else "needs a double"
                raise Unfit(index, value, f"{what}, and {other} {reason}")
