"""The messages of PostgreSQL's `pgoutput` plugin, version 1 of its protocol, other than those of rows.

See "Logical Replication Message Formats" in PostgreSQL's documentation. Rows are read many at a time, by
`pgoutput_rows.py`.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

BEGIN, COMMIT, RELATION, TRUNCATE = b"BCRT"
INSERT, UPDATE, DELETE = b"IUD"
IGNORED = frozenset(b"OYM")
"""Where a transaction came from first, names of types, and messages that programs write to the log."""

EPOCH = 946_684_800_000_000
"""2000-01-01 in microseconds since 1970: where PostgreSQL counts from."""

_BEGIN = struct.Struct(">xqqI")
_COMMIT = struct.Struct(">xBqqq")
_RELATION = struct.Struct(">xI")
_COLUMN = struct.Struct(">Ii")
_TRUNCATE = struct.Struct(">xIB")
_PART_OF_IDENTITY = 1


class Unreadable(Exception):
    """Bytes that are no message of the protocol."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction's changes follow.

    Args:
        commit: where in the log it was committed.
        committed_at: microseconds since 1970.
    """

    commit: int
    committed_at: int


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column as the log has it.

    Args:
        name: as the database has it.
        type, modifier: the oid of its type, and the type's modifier.
        identifies: whether it is part of what a changed row is told by.
    """

    name: str
    type: int
    modifier: int
    identifies: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as the changes after it have it.

    Args:
        oid: what the messages of its rows name it by.
        schema, name: where it is.
        columns: in the order of the rows' values.
    """

    oid: int
    schema: str
    name: str
    columns: tuple[RelationColumn, ...]

    @property
    def full_name(self) -> str:
        """The schema and the name."""
        return f"{self.schema}.{self.name}"


def begin(message: bytes) -> Begin:
    """Read what begins a transaction.

    Raises:
        Unreadable: it is cut off.
    """
    commit, committed_at, _ = _whole(_BEGIN, message)
    return Begin(commit, committed_at + EPOCH)


def commit_end(message: bytes) -> int:
    """Return where a transaction's own record in the log ends.

    Raises:
        Unreadable: it is cut off.
    """
    _, _, end, _ = _whole(_COMMIT, message)
    return int(end)


def truncated(message: bytes) -> list[int]:
    """Return the oids of the tables that were emptied.

    Raises:
        Unreadable: it is cut off.
    """
    count, _ = _start(_TRUNCATE, message)
    body = message[_TRUNCATE.size :]
    if len(body) != 4 * count:
        raise Unreadable(f"{count} tables in {len(body)} bytes")
    return list(struct.unpack(f">{count}I", body))


def relation(message: bytes) -> Relation:
    """Read what a table is like from now on.

    Raises:
        Unreadable: it is cut off.
    """
    (oid,) = _start(_RELATION, message)
    schema, place = _text(message, _RELATION.size)
    name, place = _text(message, place)
    count = int.from_bytes(message[place + 1 : place + 3], "big")
    place += 3
    columns = []
    for _ in range(count):
        flags = message[place : place + 1]
        column, place = _text(message, place + 1)
        if not flags or len(message) < place + _COLUMN.size:
            raise Unreadable("a column is cut off")
        type_, modifier = _COLUMN.unpack_from(message, place)
        place += _COLUMN.size
        columns.append(RelationColumn(column, type_, modifier, bool(flags[0] & _PART_OF_IDENTITY)))
    if place != len(message):
        raise Unreadable(f"{count} columns end at {place} of {len(message)} bytes")
    return Relation(oid, schema or "pg_catalog", name, tuple(columns))


def _start(form: struct.Struct, message: bytes) -> tuple[int, ...]:
    if len(message) < form.size:
        raise Unreadable(f"{message[:1]!r} in {len(message)} bytes")
    return form.unpack_from(message)


def _whole(form: struct.Struct, message: bytes) -> tuple[int, ...]:
    if len(message) != form.size:
        raise Unreadable(f"{message[:1]!r} in {len(message)} bytes")
    return form.unpack(message)


def _text(message: bytes, start: int) -> tuple[str, int]:
    """Return the text from `start` up to a zero byte, and the place behind that."""
    end = message.find(b"\0", start)
    if end < 0:
        raise Unreadable("a name without an end")
    try:
        return message[start:end].decode(), end + 1
    except UnicodeDecodeError as error:
        raise Unreadable(f"a name that is not UTF-8: {error}") from None
