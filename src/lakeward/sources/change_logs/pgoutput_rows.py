"""Rows of one table out of `pgoutput` messages: all of them at once, one column after the other.

A message holds a row's values one behind the other, each with its length, so that where the next one begins is known
only after the one before. Instead of going along each row, we take the same step for all rows together: the places
where column 1 begins give those of column 2. What a column's places give is one Arrow array over the bytes of all
messages, whose even items are the values and whose odd ones the bytes between them; taking the even ones copies each
value once, in C++.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lakeward.sources.change_logs.pgoutput import DELETE, INSERT, TRUNCATE, UPDATE, Unreadable

Places = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_KEY, _OLD, _NEW = b"KON"
_NULL, _UNCHANGED, _TEXT = b"nut"
_HEADER = 6
"""The tag, the table's oid, and what the row is."""
_PADDING = bytes(8)


@dataclass(frozen=True)
class Side:
    """The rows before their changes, or after.

    Args:
        rows: the number of each row's message.
        texts: by column: the values' texts, null where there is none.
        unchanged: by column: which values were not sent, since they are large and stay; None: all were.
    """

    rows: Places
    texts: list[pa.Array]
    unchanged: list[Flags | None]


@dataclass(frozen=True)
class RowMessages:
    """Messages of one table.

    Args:
        tags: of each message: `INSERT`, `UPDATE`, `DELETE` or `TRUNCATE`.
        old: rows as they were, of the messages that say so: deletes, and updates of some tables.
        new: rows as they are, of inserts and updates.
    """

    tags: npt.NDArray[np.uint8]
    old: Side
    new: Side


def read_rows(messages: Sequence[bytes], columns: int) -> RowMessages:
    """Read messages of rows of one table.

    Args:
        messages: in order; of a truncation only the tag is looked at.
        columns: how many the table has.

    Raises:
        Unreadable: one of them is cut off, or not what the protocol says.
    """
    sizes = np.fromiter(map(len, messages), np.int64, len(messages))
    data = b"".join([*messages, _PADDING])
    octets = np.frombuffer(data, np.uint8)
    ends = np.cumsum(sizes)
    starts = ends - sizes
    tags = octets[starts]
    kinds = octets[np.minimum(starts + _HEADER - 1, len(octets) - 1)]
    changes = tags != TRUNCATE
    before = changes & ((kinds == _KEY) | (kinds == _OLD))
    after = (tags == INSERT) | (tags == UPDATE)
    known = after | (tags == DELETE)
    if (changes & ~(known & (sizes > _HEADER) & np.where(before, tags != INSERT, after & (kinds == _NEW)))).any():
        raise Unreadable("a row's message is cut off, or of no known kind")
    walk = _Walk(data, octets, columns)
    begins = starts + _HEADER
    old, behind = walk.side(np.flatnonzero(before), begins[before], ends[before])
    # Behind the row as it was, an update says how it is now.
    again = after[before]
    if (octets[behind[again]] != _NEW).any() or (behind[~again] != ends[before][~again]).any():
        raise Unreadable("what follows a row's old values is not what it should be")
    begins[np.flatnonzero(before)[again]] = behind[again] + 1
    new, behind = walk.side(np.flatnonzero(after), begins[after], ends[after])
    if (behind != ends[after]).any():
        raise Unreadable("a row's message goes on behind the row")
    return RowMessages(tags, old, new)


class _Walk:
    """Steps over columns.

    Args:
        data: all messages, and some bytes more.
        octets: the same, as numbers.
        columns: how many a row has.
    """

    def __init__(self, data: bytes, octets: npt.NDArray[np.uint8], columns: int) -> None:
        self._buffer = pa.py_buffer(data)
        self._octets = octets
        # The big-endian number at any byte, aligned or not.
        self._lengths: npt.NDArray[np.int32] = np.ndarray((len(data) - 3,), ">i4", data, strides=(1,))
        self._counts: npt.NDArray[np.int16] = np.ndarray((len(data) - 1,), ">i2", data, strides=(1,))
        self._columns = columns

    def side(self, rows: Places, begins: Places, ends: Places) -> tuple[Side, Places]:
        """Return the rows that begin there, and the places behind them."""
        if (begins + 2 > ends).any() or (self._counts[begins] != self._columns).any():
            raise Unreadable(f"a row has not the {self._columns} columns of its table")
        place = begins + 2
        texts, unchanged = [], []
        for _ in range(self._columns):
            if (place >= ends).any():
                raise Unreadable("a row is cut off")
            kinds = self._octets[place]
            sent, left = kinds == _TEXT, kinds == _UNCHANGED
            if not (sent | left | (kinds == _NULL)).all():
                raise Unreadable("a value of no known kind")
            lengths = np.where(sent, self._lengths[np.minimum(place + 1, len(self._lengths) - 1)], 0)
            value = place + np.where(sent, 5, 1)
            place = value + lengths
            if (lengths < 0).any() or (place > ends).any():
                raise Unreadable("a value is cut off")
            texts.append(self._texts(value, place, sent))
            unchanged.append(left if left.any() else None)
        return Side(rows, texts, unchanged), place

    def _texts(self, begins: Places, ends: Places, sent: Flags) -> pa.Array:
        count = len(begins)
        if not count:
            return pa.array([], pa.string())
        offsets = np.empty(2 * count, np.int32)
        offsets[0::2], offsets[1::2] = begins, ends
        both = pa.StringArray.from_buffers(2 * count - 1, pa.py_buffer(offsets), self._buffer)
        return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32), mask=None if sent.all() else ~sent))
