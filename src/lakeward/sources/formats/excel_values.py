"""Values of cells as the Arrow array of a logical type, exactly; which type is proposed is told by `excel_inference`.

| cell | proposed type | may be declared as |
|---|---|---|
| number | `long`, past 64 bits `decimal(38,0)`; `double` if one has a fraction | any number that holds its digits |
| number with a format of dates or times | `date`, `timestamp` if one has hours, `time` | |
| time past 24 hours, as `[h]:mm` | `string`: `31:30:00` | |
| boolean | `boolean` | |
| text | `string` | whatever its text is a value of, as in CSV |

Each may be declared as `string`. The digits of a number are those of the shortest text that gives the same double.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, time

import pyarrow as pa

from lakeward.sources.formats.excel_texts import NoValue
from lakeward.sources.formats.text_values import Unconvertible, parse_text
from lakeward.types.logical import LogicalType
from lakeward.types.table import arrow_type

_NOTHING = type(None)
_AS_THEY_ARE: dict[str, set[type]] = {
    "boolean": {bool},
    "int": {int},
    "long": {int},
    "double": {int, float},
    "string": {str},
    "date": {date},
    "time": {time},
    "timestamp": {datetime},
}


class Unfit(Exception):
    """The value at `index` (from 0) does not fit; `advice`: what to do, if that is special."""

    def __init__(self, index: int, value: object, reason: str, advice: str | None = None) -> None:
        super().__init__(reason)
        self.index = index
        self.reason = reason
        self.value = value.text if isinstance(value, NoValue) else text_of(value)
        self.advice = advice


def text_of(value: object) -> str:
    """Return the text of a cell's value: of a number the shortest one that gives the same bits.

    Example:
        >>> [text_of(value) for value in (0.1, 12, True, datetime(2024, 2, 29, 10, 11), Elapsed("31:30:00"))]
        ['0.1', '12', 'true', '2024-02-29 10:11:00', '31:30:00']
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat(" ")
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, NoValue):
        return value.text
    return "" if value is None else str(value)


def check_values(values: Sequence[object]) -> None:
    """Refuse cells that hold no value of any type.

    Raises:
        Unfit: the first of them.
    """
    if NoValue not in set(map(type, values)):
        return
    for index, value in enumerate(values):
        if isinstance(value, NoValue):
            raise Unfit(index, value, value.reason, value.advice)


def excel_array(values: Sequence[object], type_: LogicalType) -> pa.Array:
    """Return values of cells as an array of the Arrow type of `type_`.

    Raises:
        Unfit: the first value found that is not one of the type, or would change.
        SchemaError: the type is a list or a struct.
    """
    check_values(values)
    if set(map(type, values)) - {_NOTHING} <= _AS_THEY_ARE.get(type_.kind, set()):
        try:
            return pa.array(values, arrow_type(type_))
        except (pa.ArrowInvalid, OverflowError):
            # A whole number too large; found by its text.
            pass
    texts = [None if value is None else _text_for(value, type_) for value in values]
    try:
        return parse_text(pa.array(texts, pa.string()), type_)
    except Unconvertible as error:
        raise Unfit(error.index, values[error.index], error.reason) from None


def _text_for(value: object, type_: LogicalType) -> str:
    if type_.kind == "date" and isinstance(value, datetime) and value.time() == time():
        # Excel does not tell a day from its midnight.
        value = value.date()
    return text_of(value)
