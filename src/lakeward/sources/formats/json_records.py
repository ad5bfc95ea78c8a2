"""Cuts a JSON file into its objects, in one array or one after the other, and tells the line on which each starts.

The parser is the standard library's, given hooks that keep every number as the text that stands in the file and refuse
a key that comes twice. It is called at the start of each object, and stops at its end, so that a text of any length is
read in pieces: an object whose end has not been read yet is tried again with more text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, ClassVar

from lakeward.errors import SourceFileError
from lakeward.sources.formats.csv_source import TextSource
from lakeward.sources.source_file import SourceFile

BLOCK_BYTES = 2 << 20
MAX_RECORD_CHARACTERS = 128 << 20
"""A longer object is refused, so that a brace that is never closed does not pull the whole file into memory."""

_SPACE = re.compile(r"[ \t\r\n]*")
# An escape that may stand for a NUL or for half a surrogate pair.
_SUSPECT = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")
# The longest word, escape or number whose cut end looks like a fault; any other fault of a cut text is at its very end.
_LONGEST_CUT = 16


class Number(str):
    """A JSON number, as the text that stands in the file."""

    __slots__ = ()


class RecordRefused(ValueError):
    """An object is JSON, and not one that can be taken."""


@dataclass(frozen=True)
class Chunk:
    """Some objects, the physical line (from 1) on which each starts, and its text. Numbers are `Number`."""

    rows: list[dict[str, Any]]
    lines: list[int]
    texts: list[str]


class _Place(Enum):
    START = auto()
    IN_ARRAY = auto()
    NEXT = auto()
    BEHIND = auto()
    END = auto()


def json_chunks(file: SourceFile, block_bytes: int = BLOCK_BYTES, cutter: Cutter | None = None) -> Iterator[Chunk]:
    """Yield the objects of a JSON file in order.

    Args:
        file: the file; UTF-8, also packed.
        block_bytes: how much is read at once; memory is bounded by a small multiple of it, and of the longest object.
        cutter: one that leaves records out; None: the first that is not right is refused.

    Raises:
        SourceFileError: not JSON, or another value than an object where one is expected, with line and character
            (from 1); an object has a key twice, or a text that no dataset can hold, with its line.
    """
    with TextSource(file, "utf-8", kind="JSON", escape=cutter is not None) as source:
        cutter = cutter or Cutter(file)
        size, data = block_bytes, b"-"
        while data:
            data = source.read(size)
            chunk = cutter.take(data.decode(), final=not data)
            # Doubled, so that an object of n characters is looked at only O(log n) times.
            size = block_bytes if chunk.rows else max(block_bytes, cutter.waiting)
            if chunk.rows:
                yield chunk


class Cutter:
    """Takes the file's text piece by piece, and gives the objects that are complete."""

    LEFT_OUT: ClassVar[dict[str, Any]] = {}
    """Stands for an object that is there and is not given."""

    keeps_texts: ClassVar[bool] = False
    """Whether a chunk has the texts of its objects."""

    def __init__(self, file: SourceFile) -> None:
        self._file = file
        self._text = ""
        self._at = 0
        self._line = 1
        self._line_before = 0  # characters of the current line that are no longer in `_text`
        self._place = _Place.START
        self._in_array = False
        self._last_line = 0
        self._has_escapes = False

    @property
    def waiting(self) -> int:
        """How many characters wait for more."""
        return len(self._text)

    def take(self, text: str, final: bool) -> Chunk:
        """Add text, and return the objects that end in it."""
        self._text += text
        self._has_escapes = "\\u" in self._text
        chunk = Chunk([], [], [])
        while self._at_character():
            if self._take_mark(self._text[self._at]):
                continue
            line, start = self._line, self._at
            row = self._object(final)
            if row is None:
                break
            if row is not self.LEFT_OUT:
                chunk.rows.append(row)
                chunk.lines.append(line)
                if self.keeps_texts:
                    chunk.texts.append(self._text[start : self._at])
        if final and self._in_array and self._place is not _Place.END:
            raise self._refused("the file ends inside its array", len(self._text))
        self._drop_taken()
        if not chunk.rows and len(self._text) > MAX_RECORD_CHARACTERS:
            raise self._refused(f"an object is longer than {MAX_RECORD_CHARACTERS >> 20} Mi characters", 0)
        return chunk

    def _at_character(self) -> bool:
        space = _SPACE.match(self._text, self._at)
        assert space is not None
        self._move(space.end())
        return self._at < len(self._text)

    def _take_mark(self, character: str) -> bool:
        """Take what stands between objects; False if an object comes next."""
        if self._place is _Place.START and character == "[":
            self._in_array, self._place = True, _Place.IN_ARRAY
        elif self._in_array and character == "]" and self._place in (_Place.IN_ARRAY, _Place.BEHIND):
            self._place = _Place.END
        elif self._in_array and character == "," and self._place is _Place.BEHIND:
            self._place = _Place.NEXT
        elif self._place is _Place.END:
            raise self._refused("something stands behind the array", self._at)
        elif self._place is _Place.BEHIND and self._in_array:
            raise self._refused("a comma or the end of the array is expected", self._at)
        elif self._place is _Place.BEHIND and self._line == self._last_line:
            raise self._refused("a line break is expected between two objects", self._at)
        else:
            return False
        self._move(self._at + 1)
        return True

    def _object(self, final: bool) -> dict[str, Any] | None:
        """Return the object that starts here, or None if its end is not there yet."""
        if self._text[self._at] != "{":
            raise self._refused("an object is expected, one for each row", self._at)
        row: dict[str, Any]
        try:
            row, end = DECODER.raw_decode(self._text, self._at)
            if self._has_escapes and _SUSPECT.search(self._text, self._at, end):
                check_texts(row)
        except json.JSONDecodeError as error:
            if not final and may_go_on(error, len(self._text)):
                return None
            raise self._refused(f"it is not JSON: {error.msg}", error.pos) from None
        except RecordRefused as error:
            raise self._refused(str(error), self._at) from None
        except RecursionError:
            raise self._refused("the object is nested too deep", self._at) from None
        self._took(end)
        return row

    def _took(self, end: int) -> None:
        """Take the record that ends there as read."""
        self._move(end)
        self._place, self._last_line = _Place.BEHIND, self._line

    def _move(self, to: int) -> None:
        self._line += self._text.count("\n", self._at, to)
        self._at = to

    def _drop_taken(self) -> None:
        newline = self._text.rfind("\n", 0, self._at)
        self._line_before = self._at - newline - 1 if newline >= 0 else self._line_before + self._at
        self._text, self._at = self._text[self._at :], 0

    def _refused(self, reason: str, position: int) -> SourceFileError:
        line = self._line + self._text.count("\n", self._at, position)
        newline = self._text.rfind("\n", 0, position)
        character = position - newline if newline >= 0 else self._line_before + position + 1
        return SourceFileError(
            f"{self._file}: line {line}, character {character}: {reason}",
            next_step="correct the file: one object for each row, each on its own line or all in one array",
            path=str(self._file),
            line=line,
            character=character,
            reason=reason,
        )


def may_go_on(error: json.JSONDecodeError, length: int) -> bool:
    """Tell whether the text may only have been cut off. A line break ends a text in quotes, so no fault hides there."""
    return error.msg.startswith("Unterminated string") or error.pos >= length - _LONGEST_CUT


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise RecordRefused(f"the object has the key {twice!r} more than once")
    return found


def _no_constant(name: str) -> object:
    raise RecordRefused(f"the object has {name}, which JSON has not")


DECODER = json.JSONDecoder(
    parse_int=Number, parse_float=Number, parse_constant=_no_constant, object_pairs_hook=_unique, strict=True
)


def check_texts(row: dict[str, Any]) -> None:
    """Raise `RecordRefused` where a text or key holds a NUL or half a surrogate pair."""
    for name, value in row.items():
        for text in (name, *_texts(value)):
            if "\0" in text:
                raise RecordRefused(f"column {name!r} has a NUL character, which no dataset holds")
            try:
                text.encode()
            except UnicodeEncodeError:
                raise RecordRefused(f"column {name!r} has half a surrogate pair, which is not a character") from None


def _texts(value: object) -> list[str]:
    """Return every text and key inside a value; without recursion, because it may be deep."""
    found = [value]
    for inner in found:
        if isinstance(inner, dict):
            found.extend(inner)
            found.extend(inner.values())
        elif isinstance(inner, list):
            found.extend(inner)
    return [text for text in found if isinstance(text, str)]
