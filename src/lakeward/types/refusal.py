"""How a value that can't be stored is named: dataset, row of the whole input, key of that row, and column path.

A `Place` goes down with an array through its nesting and finds the way back only when something is refused, so that
good data pays nothing for it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lakeward.errors import ColumnMismatch, ValueRefused
from lakeward.types.logical import LogicalType

NOTHING_WRITTEN = "nothing was written"
MAX_SHOWN = 100


@dataclass(frozen=True)
class Origin:
    """One batch of the input. `first_row` is 1-based in the whole input; `key(i)` is the text of the batch's row i."""

    dataset: str
    first_row: int
    key: Callable[[int], dict[str, str]]

    def column(self, name: str) -> Place:
        """Return the place of a top-level column."""
        return Place(self, name, lambda index: (index, name))

    def refuse(self, index: int, value: object, reason: str, column: str | None = None) -> ValueRefused:
        """Return the error for the batch's row `index`."""
        row = self.first_row + index
        key = self.key(index)
        named = f" ({', '.join(f'{name}={text}' for name, text in key.items())})" if key else ""
        where = f", column {column!r}" if column else ""
        shown = show(value)
        return ValueRefused(
            f"dataset {self.dataset}: row {row}{named}{where}: value {shown} {reason}",
            safe=NOTHING_WRITTEN,
            dataset=self.dataset,
            column=column,
            row=row,
            key=key,
            value=shown,
            reason=reason,
        )


@dataclass(frozen=True)
class Place:
    """Where an array stands in its batch: its path (`s.a[]`), and for its item i the row and the exact path."""

    origin: Origin
    name: str
    locate: Callable[[int], tuple[int, str]]

    def field(self, name: str) -> Place:
        """Return the place of a struct's field."""

        def locate(index: int) -> tuple[int, str]:
            row, path = self.locate(index)
            return row, f"{path}.{name}"

        return Place(self.origin, f"{self.name}.{name}", locate)

    def elements(self, offsets: Sequence[int]) -> Place:
        """Return the place of the flattened elements; list i has those from `offsets[i]` to `offsets[i + 1]`."""

        def locate(index: int) -> tuple[int, str]:
            parent = bisect_right(offsets, index) - 1
            row, path = self.locate(parent)
            return row, f"{path}[{index - int(offsets[parent])}]"

        return Place(self.origin, f"{self.name}[]", locate)

    def refuse(self, index: int, value: object, reason: str) -> ValueRefused:
        """Return the error for the value at `index`."""
        row, path = self.locate(index)
        return self.origin.refuse(row, value, reason, path)

    def mismatch(self, source: object, type_: LogicalType, next_step: str | None = None) -> ColumnMismatch:
        """Return the error for a column whose type has no conversion without loss."""
        return ColumnMismatch(
            f"dataset {self.origin.dataset}: column {self.name!r} is {type_}, but the input"
            f"{self._from_row()} has {source}, which is not converted",
            safe=NOTHING_WRITTEN,
            next_step=next_step,
            dataset=self.origin.dataset,
            column=self.name,
            type=str(type_),
            source_type=str(source),
            missing=[],
            unexpected=[],
        )

    def _from_row(self) -> str:
        return f" from row {self.origin.first_row} on" if self.origin.first_row > 1 else ""


def show(value: object) -> str:
    """Return a value for a message: text and bytes quoted, all else plain, cut at 100 characters."""
    if isinstance(value, pa.Scalar):
        value = _unwrapped(value)
    try:
        quoted = value is None or isinstance(value, str | bytes | bytearray | dict | list | tuple)
        text = repr(value) if quoted else str(value)
    except (RecursionError, ValueError):  # nested too deep, or an integer of more digits than Python prints
        text = f"<{type(value).__name__}>"
    return text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + "…"


def _unwrapped(scalar: pa.Scalar) -> object:
    try:
        return scalar.as_py()
    except UnicodeDecodeError:
        return scalar.cast(pa.binary()).as_py()
    except (ValueError, OverflowError):
        # A date or instant that Python can't hold, which is why it is refused.
        return str(scalar.cast(pa.string()))
