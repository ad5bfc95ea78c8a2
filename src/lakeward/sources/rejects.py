"""Records of a file that can't be taken: what is told of each, and the search for those that are at fault in a batch.

Without a sink, the first of them ends the read with an error. With one, each is told to it and left out, and the
others are read: every record of a file is a row, or is told. Damage after which it is not certain where the next
record begins is never left out: it ends the read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

NULL_KEY = "is null, and it is part of the primary key"
"""Why a record is left out that has no value in a column which must have one."""

RECORD_CHARACTERS = 65_536
"""How much of a rejected record is kept."""

_Fault = TypeVar("_Fault")


@dataclass(frozen=True)
class Rejected:
    """One record that was left out.

    Args:
        line: the physical line (from 1) where the fault stands; in a file without lines the row.
        column: the name of the one at fault, if it is one.
        reason: what is wrong.
        record: its text, of a very long one the first `RECORD_CHARACTERS`. Bytes that are no text stand as `\\xe9`.
    """

    line: int
    column: str | None
    reason: str
    record: str


Rejects = Callable[[Rejected], None]
"""Is told each record that is left out."""


def misfits(size: int, fault: Callable[[int, int], _Fault | None]) -> dict[int, _Fault]:
    """Return every position in 0 … `size` that is at fault, with its fault. Costs little where they are few.

    Args:
        size: how many positions there are.
        fault: tells what is wrong among those from one up to another, if anything is.
    """
    found: dict[int, _Fault] = {}
    ranges = [(0, size)]
    while ranges:
        low, high = ranges.pop()
        wrong = fault(low, high) if high > low else None
        if wrong is None:
            continue
        if high - low == 1:
            found[low] = wrong
            continue
        middle = (low + high) // 2
        ranges += [(middle, high), (low, middle)]
    return found
