"""Reads a log to its present end, and keeps what it found."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
import pyarrow as pa

from lakeward.sources.change_log import Changes, FollowedTable
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.sources.connector import Position, ReadWindow, SourceTable


def types_of(table: SourceTable, text: Sequence[str] = ()) -> dict[str, str]:
    """Return how the columns of a table are read."""
    return {column.name: "string" if column.name in text else column.type or "string" for column in table.columns}


class Reader:
    """Begins to follow tables, and copies them.

    Args:
        log: of the source.
        tables: as they were discovered.
        text: names of columns that are read as text.
    """

    def __init__(self, log: PostgresChangeLog, tables: Sequence[SourceTable], text: Sequence[str] = ()) -> None:
        self.log = log
        self.text = text
        self.followed: dict[str, FollowedTable] = {}
        self.copies: dict[str, pa.Table] = {}
        self.upto: Position | None = None
        self.batches: list[Changes] = []
        self.add(tables)

    def add(self, tables: Sequence[SourceTable]) -> None:
        """Begin to follow these as well."""
        with self.log.begin(tables) as (snapshot, position):
            for table in tables:
                types = types_of(table, self.text)
                self.copies[table.full_name] = snapshot.read(ReadWindow(table, types)).rows.read_all()
                self.followed[table.full_name] = FollowedTable(table, types, position)

    def read_to(self, connection: psycopg.Connection, acknowledge: bool = True) -> list[dict[str, Any]]:
        """Return the changes up to now, in order."""
        row = connection.execute("SELECT pg_current_wal_insert_lsn() - '0/0'").fetchone()
        assert row is not None
        # Something has to follow, so that the end is told.
        connection.execute("SELECT pg_logical_emit_message(true, 'test', '')")
        found: list[dict[str, Any]] = []
        stream = self.log.follow(list(self.followed.values()), wait_seconds=0.05)
        for changes in stream:
            self.batches.append(changes)
            for table, batch in changes.rows.items():
                found.extend({"table": table, **row} for row in batch.to_pylist())
            if changes.upto is not None:
                self.upto = changes.upto
                if acknowledge:
                    self.log.acknowledge(changes.upto)
                if changes.upto["place"] > row[0]:
                    break
        stream.close()
        return sorted(found, key=lambda row: (row["__commit"], row["__ordinal"]))

    def read_on(self, stream: Iterator[Changes]) -> None:
        """Read and acknowledge, until something ends it."""
        for changes in stream:
            if changes.upto is not None:
                self.log.acknowledge(changes.upto)
