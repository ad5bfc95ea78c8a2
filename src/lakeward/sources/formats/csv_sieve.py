"""Takes the records out of a CSV file that can't be read, and tells what is wrong with each.

A record with too few or too many fields ends where its grammar says. One that breaks the grammar has no such end: it is
taken to end with the first line, at or behind the fault, up to which its quotes are even in number, as most programs
that wrote such a line meant it. Where there is none, and where a quote is open at the end of the file, nothing tells
which lines are records, so that the file is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field

from lakeward.sources.formats.csv_dialect import Dialect, Malformed, Record
from lakeward.sources.formats.escaped_text import fault_of, unmarked
from lakeward.sources.rejects import RECORD_CHARACTERS, Rejected, Rejects


@dataclass(frozen=True)
class Block:
    """Whole records: their UTF-8 text, the physical line (from 1) of its start, and how many they are.

    `gaps`: how many lines of the file were left out before the record at a position (from 0).
    """

    data: bytes
    line: int
    rows: int
    gaps: dict[int, int] = field(default_factory=dict)


class Sieve:
    """Lets right records through.

    Args:
        dialect: their grammar.
        names: of their fields.
        encoding: of the file, for what is told.
        rejects: is told the others.
    """

    def __init__(self, dialect: Dialect, names: Sequence[str], encoding: str, rejects: Rejects) -> None:
        self._dialect = dialect
        self._names = names
        self._encoding = encoding
        self._rejects = rejects
        self._right = dialect.record_pattern(len(names))

    def sift(self, data: bytes, line: int, final: bool) -> tuple[int, Block]:
        """Return the right records among the complete ones at the start of `data`, and the length of all of these.

        Args:
            data: UTF-8, with the marks of `escaped_text`.
            line: the physical line of its start.
            final: the data ends with a record.

        Raises:
            Malformed: it is not certain where a record ends.
        """
        kept: list[bytes] = []
        gaps: dict[int, int] = {}
        rows, end, at_line = 0, 0, line
        while end < len(data):
            start = end
            while match := self._right.match(data, end):
                rows, end = rows + 1, match.end()
            if end > start:
                kept.append(data[start:end])
                at_line += data.count(b"\n", start, end)
                continue
            stop, fault = self._next(data, end, at_line, final)
            if stop == end:
                break
            lines = data.count(b"\n", end, stop)
            if fault is None:
                rows += 1
                kept.append(data[end:stop])
            else:
                self._rejects(fault)
                gaps[rows] = gaps.get(rows, 0) + lines
            at_line, end = at_line + lines, stop
        if kept and not kept[-1].endswith(b"\n"):
            kept.append(b"\n")
        return end, Block(b"".join(kept), line, rows, gaps)

    def records(self, block: Block, wanted: Collection[int]) -> Iterator[tuple[int, bytes, int]]:
        """Yield the wanted records of a block: position, text, and the physical line of its start."""
        end, line = 0, block.line
        for position in range(max(wanted, default=-1) + 1):
            line += block.gaps.get(position, 0)
            match = self._right.match(block.data, end)
            stop = match.end() if match else next(self._dialect.walk(block.data, line, True, end)).end
            if position in wanted:
                yield position, block.data[end:stop], line
            line += block.data.count(b"\n", end, stop)
            end = stop

    def reject_value(self, text: bytes, line: int, column: int, reason: str) -> None:
        """Tell a record of which one value is refused.

        Args:
            text: of the record.
            line: on which it starts.
            column: the value's position (from 0).
            reason: why it is refused.
        """
        line = next(self._dialect.walk(text, line, True)).fields[column].line
        self._rejects(Rejected(line, self._names[column], reason, _shown(text)))

    def _next(self, data: bytes, start: int, line: int, final: bool) -> tuple[int, Rejected | None]:
        """Return where the record ends that is not plainly right, and what is wrong with it; its start: not known yet.

        Raises:
            Malformed: it is not certain where it ends.
        """
        try:
            record = next(self._dialect.walk(data, line, final, start), None)
        except Malformed as error:
            stop = None if error.unclosed else self._end_of_broken(data, start, error.line - line, final)
            if stop is None and final:
                raise
            if stop is None:
                return start, None
            column = self._names[error.position] if error.position < len(self._names) else None
            return stop, Rejected(error.line, column, error.reason, _shown(data[start:stop]))
        if record is None:
            return start, None
        return record.end, self._fault(record, data[start : record.end], line)

    def _fault(self, record: Record, text: bytes, line: int) -> Rejected | None:
        if len(record.fields) != len(self._names):
            count = len(record.fields)
            found = f"has {count} field{'s' * (count != 1)}" if text.strip(b"\r\n") else "is empty"
            return Rejected(line, None, f"{found}; {len(self._names)} fields are expected", _shown(text))
        if b"\0" not in text:
            return None
        position = next(number for number, each in enumerate(record.fields) if "\0" in each.value)
        value = record.fields[position]
        reason = fault_of(value.value, self._encoding)
        assert reason is not None, "a NUL stands in a mark alone"
        at = value.line + value.value[: value.value.index("\0")].count("\n")
        return Rejected(at, self._names[position], reason, _shown(text))

    def _end_of_broken(self, data: bytes, start: int, lines: int, final: bool) -> int | None:
        """Return the end of the first line, `lines` behind the first or later, that closes as many quotes as open."""
        quotes, at = 0, start
        while (found := data.find(b"\n", at)) >= 0:
            quotes += data.count(self._dialect.quote, at, found)
            at = found + 1
            if lines <= 0 and quotes % 2 == 0:
                return at
            lines -= 1
        quotes += data.count(self._dialect.quote, at)
        return len(data) if final and at < len(data) and quotes % 2 == 0 else None


def _shown(text: bytes) -> str:
    # A character has up to four bytes.
    head = text[: 4 * RECORD_CHARACTERS].decode(errors="ignore")
    return unmarked(head.rstrip("\r\n"))[:RECORD_CHARACTERS]
