"""Proposes the type of a JSON column from every value of it.

What JSON calls a number becomes long, decimal or double as in CSV. A text stays text, however much it looks like a
number, unless all are dates or instants. Objects and arrays become json; a struct or list can be declared. Values of
two kinds in one column are refused: a type that holds both has to be somebody's choice.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from lakeward.sources.formats.csv_inference import TypeInference, classify
from lakeward.sources.formats.json_records import Number
from lakeward.sources.formats.json_values import Unfit, kind_of

_KEPT_FOR_TEXT = ("date", "timestamp", "timestamptz", "string")


class JsonInference:
    """The proposal for one column, updated batch by batch."""

    def __init__(self) -> None:
        self._first: tuple[object, int, object] | None = None
        self._numbers = TypeInference()
        self._text: str | None = None

    @property
    def type_text(self) -> str:
        """The logical type text that holds every value seen; `string` where there was none."""
        if self._first is None:
            return "string"
        value = self._first[0]
        if isinstance(value, Number):
            number = self._numbers.type_text
            # The digits of a number that no double or decimal(38,0) holds are kept by json.
            return "json" if number == "string" else number
        return {bool: "boolean", str: self._text or "string"}.get(type(value), "json")

    def add(self, values: Sequence[object], lines: Sequence[int], file: object) -> None:
        """Take the next values, and the lines of a file that they are from, into account; nulls say nothing.

        Raises:
            Unfit: a value is of another kind than the first one.
        """
        kinds = set(map(type, values)) - {type(None)}
        if not kinds:
            return
        if self._first is None:
            index = next(index for index, value in enumerate(values) if value is not None)
            self._first = (values[index], lines[index], file)
        first, line, first_file = self._first
        family = _family(type(first))
        if not kinds <= family:
            index = next(i for i, value in enumerate(values) if value is not None and type(value) not in family)
            where = f"line {line}" if first_file is file else f"line {line} of {first_file}"
            raise Unfit(index, values[index], f"is {kind_of(values[index])}, and {where} has {kind_of(first)}")
        if isinstance(first, Number):
            self._numbers.add(pa.array(values, pa.string()))
        elif isinstance(first, str) and self._text != "string":
            found = classify(pa.array(values, pa.string()), self._text)
            kept = found if isinstance(found, str) and found in _KEPT_FOR_TEXT else "string"
            self._text = kept if self._text in (None, kept) else "string"


def _family(kind: type) -> set[type]:
    return {dict, list} if kind in (dict, list) else {kind}
