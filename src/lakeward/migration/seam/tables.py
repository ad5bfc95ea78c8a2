"""The tables that are looked for, and how they may be written: with or without schema, quotes, and in any case."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from lakeward.errors import UsageError

DEFAULT_TABLES = ("lakeward.dataset_rows",)
"""The row table of a workspace."""

HOLE = "lakeward_hole"
"""Stands in a text for what is only known at run time. Next to a name, it may be anything, nothing as well."""

_PART = re.compile(r'\s*(?:"((?:[^"]|"")+)"|`([^`]+)`|\[([^\]]+)\]|([^\s."`\[\]]+))\s*(?:\.|$)')


@dataclass(frozen=True)
class Mention:
    """One access within a text.

    Args:
        ordinal: how many times a table's bare name stands in the text before it.
        kind: what the statement does (`select`, `insert` …), `name` for a name in code, `text` for a part of a
            statement, or a text that is none.
        table: as it was asked for.
    """

    ordinal: int
    kind: str
    table: str


class Tables:
    """What is looked for. Names are compared without case: code that quotes another case is looked at all the same.

    Args:
        names: `schema.table` (found without schema, too), or `table` (found in any schema).

    Raises:
        UsageError: a name is not one or two identifiers, or there is none.
    """

    def __init__(self, names: Sequence[str]) -> None:
        if not names:
            raise UsageError("no table is named", next_step="name one: --table schema.table")
        self.names = tuple(sorted(set(names)))
        self._known = [(*_schema_and_table(name), name) for name in self.names]
        bare = sorted({table for _, table, _ in self._known}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, bare)), re.IGNORECASE)
        self._words = re.compile(rf"(?<!\w)(?:{self._pattern.pattern})(?!\w)", re.IGNORECASE)
        raw = b"|".join(map(_in_utf8, bare))
        self.raw = re.compile(raw, re.IGNORECASE)
        """Finds the bare names in UTF-8."""
        self.raw_words = re.compile(rb"(?<!\w)(?:" + raw + rb")(?!\w)", re.IGNORECASE)
        """Finds those that are words of their own."""

    def starts(self, text: str) -> list[int]:
        """Return where bare names stand in a text, as parts of longer words, too; in order."""
        return [found.start() for found in self._pattern.finditer(text)]

    def words(self, text: str, kind: str) -> list[Mention]:
        """Return every mention that is a word of its own. Needs no grammar, so it never fails."""
        starts = self.starts(text)
        return [
            Mention(bisect_left(starts, found.start()), kind, table)
            for found in self._words.finditer(text.replace(HOLE, " " * len(HOLE)))
            if (table := self.find([found.group()])) is not None
        ]

    def find(self, parts: Sequence[str]) -> str | None:
        """Return the table that an identifier with its qualifiers (outermost first) may mean."""
        *qualifiers, table = (part.lower().replace(HOLE, "") for part in parts)
        schema = qualifiers[-1] if qualifiers else ""
        for known_schema, known_table, name in self._known:
            if table == known_table and (not schema or not known_schema or schema == known_schema):
                return name
        return None

    def named_by(self, text: str) -> str | None:
        """Return the table whose name, with or without schema and quotes, is all that a text says."""
        parts = _parts(text)
        return self.find(parts) if parts else None


def _schema_and_table(name: str) -> tuple[str, str]:
    parts = _parts(name.lower())
    if not 1 <= len(parts) <= 2:
        raise UsageError(
            f"{name!r} is not a table's name: it has to be `table` or `schema.table`",
            next_step="write it as in SQL: --table schema.table; quote a part that holds a dot",
            table=name,
        )
    return (parts[0] if len(parts) == 2 else ""), parts[-1]


def _in_utf8(name: str) -> bytes:
    """Return a pattern of bytes for a name in any case; bytes know the case of ASCII letters only."""
    return "".join(
        re.escape(letter) if letter.isascii() else f"(?:{letter.lower()}|{letter.upper()})" for letter in name
    ).encode()


def _parts(text: str) -> list[str]:
    """Split a dotted name; an empty list for any other text."""
    parts: list[str] = []
    position = 0
    while found := _PART.match(text, position):
        parts.append(next(group for group in found.groups() if group is not None).replace('""', '"'))
        position = found.end()
        if position == len(text):
            return parts if not text.rstrip().endswith(".") else []
    return []
