"""The grammar of a CSV file: an exact, slow walk over its records, and fast answers where quotes stand plainly.

The grammar is RFC 4180 with three decisions. A quote inside a field that did not start with one is text (`5" pipe`).
Text after a closing quote, and a carriage return alone outside quotes, are refused. In a file of one column an empty
line is a record of one null; elsewhere it has too few fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_CR = ord("\r")
_LF = ord("\n")


@dataclass(frozen=True)
class Field:
    """One field as text, the physical line (from 1) on which it starts, and whether it was quoted."""

    value: str
    line: int
    quoted: bool


@dataclass(frozen=True)
class Record:
    """The fields of one record, and the offset just behind its line end."""

    fields: list[Field]
    end: int


class Malformed(Exception):
    """The text breaks the grammar at a line (from 1), in the field at `position` (from 0) of its record.

    `unclosed`: by a quote that is open where the file ends.
    """

    def __init__(self, line: int, position: int, reason: str, unclosed: bool = False) -> None:
        super().__init__(reason)
        self.unclosed = unclosed
        self.line = line
        self.position = position
        self.reason = reason


class Dialect:
    """The grammar for one pair of delimiter and quote, over UTF-8 bytes that start at the start of a record."""

    def __init__(self, delimiter: str, quote: str) -> None:
        self.delimiter = delimiter.encode()
        self.quote = quote.encode()
        q, d = re.escape(self.quote), re.escape(self.delimiter)
        # Possessive, so that a field of many megabytes takes no stack and a missing quote no second look.
        self._quoted = re.compile(b"%b[^%b]*+(?:%b%b[^%b]*+)*+%b" % (q, q, q, q, q, q))
        quoted_text = b"%b[^%b\0]*+(?:%b%b[^%b\0]*+)*+%b" % (q, q, q, q, q, q)
        self._plain = re.compile(b"[^%b\r\n]*+" % d)
        self._field_pattern = b"(?:%b|[^%b%b\r\n\0][^%b\r\n\0]*+|)" % (quoted_text, q, d, d)
        self._delimiter_pattern = d
        self._neither_quote_nor_line = bytes(byte for byte in range(256) if byte not in (self.quote[0], _LF))
        self._before_quote = pa.array([self.delimiter[0], _LF, self.quote[0]], pa.uint8())
        self._after_quote = pa.array([self.delimiter[0], _LF, self.quote[0], _CR], pa.uint8())

    def walk(self, data: bytes, line: int, final: bool, start: int = 0) -> Iterator[Record]:
        """Yield the records of `data` from `start` on, which is on physical line `line`.

        Args:
            final: the file ends here, so the last record needs no line end; else an incomplete one is left out.

        Raises:
            Malformed: the text breaks the grammar.
        """
        position, size = start, len(data)
        while position < size:
            fields: list[Field] = []
            while True:
                field, position = self._field(data, position, line, len(fields), final)
                if field is None or (position == size and not final):
                    return
                fields.append(field)
                line += field.value.count("\n")
                if position == size:
                    yield Record(fields, position)
                    return
                if data[position] == self.delimiter[0]:
                    position += 1
                    continue
                if data[position] == _CR and position + 1 == size and not final:
                    return
                position = self._line_end(data, position, line, len(fields) - 1)
                line += 1
                yield Record(fields, position)
                break

    def _field(self, data: bytes, start: int, line: int, position: int, final: bool) -> tuple[Field | None, int]:
        if data[start : start + 1] != self.quote:
            end = self._plain.match(data, start).end()  # type: ignore[union-attr]  # it matches the empty string
            return Field(data[start:end].decode(), line, quoted=False), end
        match = self._quoted.match(data, start)
        if match is None:
            if final:
                raise Malformed(line, position, "the quote that opens here is never closed", unclosed=True)
            return None, start
        text = data[start + 1 : match.end() - 1].replace(self.quote * 2, self.quote).decode()
        return Field(text, line, quoted=True), match.end()

    def _line_end(self, data: bytes, position: int, line: int, field: int) -> int:
        if data[position] == _LF:
            return position + 1
        if data[position] == _CR:
            if data[position + 1 : position + 2] == b"\n":
                return position + 2
            raise Malformed(line, field, "a carriage return stands alone outside quotes")
        raise Malformed(line, field, "text follows the closing quote")

    def record_pattern(self, width: int) -> re.Pattern[bytes]:
        """Return a pattern of one right record of `width` fields with its line end, ten times as fast as the walk.

        It matches only what the walk accepts, and no NUL; where it does not match, the walk tells why.
        """
        rest = b"(?:%b%b){%d}" % (self._delimiter_pattern, self._field_pattern, width - 1)
        return re.compile(self._field_pattern + rest + b"\r?\n")

    def is_plain(self, data: bytes) -> bool:
        """Tell whether every quote opens, closes or doubles, so that counting quotes tells inside from outside.

        In `data`, which may end inside a record, the quotes are numbered from 0. If each one with an even number
        follows a delimiter, a line end or a quote, and each one with an odd number precedes one of these, then by
        induction the even ones open a field or are the second half of a doubled quote, and the odd ones close it or
        are the first half.
        """
        if self.quote not in data:
            return True
        # A line feed on both sides: every quote has a neighbour, and a quote that ends the data counts as closing.
        padded = pa.py_buffer(b"\n" + data + b"\n")
        bytes_ = pa.Array.from_buffers(pa.uint8(), len(padded), [None, padded])
        quotes = pc.indices_nonzero(pc.equal(bytes_, self.quote[0]))
        pairs = pa.FixedSizeListArray.from_arrays(quotes[: len(quotes) // 2 * 2], 2)
        opening = pc.list_element(pairs, 0)
        closing = pc.list_element(pairs, 1)
        if len(quotes) % 2:
            opening = pa.concat_arrays([opening, quotes[-1:]])
        return bool(
            pc.all(pc.is_in(bytes_.take(pc.subtract(opening, 1)), self._before_quote), min_count=0).as_py()
            and pc.all(pc.is_in(bytes_.take(pc.add(closing, 1)), self._after_quote), min_count=0).as_py()
        )

    def last_line_end(self, data: bytes) -> int:
        """Return the offset behind the last line end outside quotes, or 0. Needs plain quotes."""
        if self.quote not in data:
            return data.rfind(b"\n") + 1
        end = len(data)
        quotes_before = data.count(self.quote)
        while (line_end := data.rfind(b"\n", 0, end)) >= 0:
            quotes_before -= data.count(self.quote, line_end, end)
            if quotes_before % 2 == 0:
                return line_end + 1
            # Inside a quoted field: go to before the quote, past all its other line ends.
            end = data.rfind(self.quote, 0, line_end)
            quotes_before -= 1
        return 0

    def count_line_ends(self, data: bytes) -> int:
        """Return the number of line ends outside quotes. Needs plain quotes."""
        if self.quote not in data:
            # A third of the time that counting in bytes takes, where many are found.
            return int(np.count_nonzero(np.frombuffer(data, np.uint8) == _LF))
        # Of the quotes and line feeds alone, pairs that touch go away: what is left alternates, and is short.
        marks = data.translate(None, self._neither_quote_nor_line).replace(self.quote * 2, b"")
        return sum(len(outside) for outside in marks.split(self.quote)[::2])
