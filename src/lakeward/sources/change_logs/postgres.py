"""The log of changes of PostgreSQL: logical replication by its own plugin `pgoutput`, by a publication and a slot."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, ClassVar

import psycopg
import psycopg2
from pydantic import BaseModel

from lakeward.control.db import Queries
from lakeward.errors import SchemaError, SettingsError, SourceError
from lakeward.sources.allowed import Allowed
from lakeward.sources.change_log import ChangeLog, Changes, FollowedTable, LogState
from lakeward.sources.change_logs.pgoutput import Unreadable
from lakeward.sources.change_logs.postgres_follower import Follower
from lakeward.sources.change_logs.postgres_position import LogPosition
from lakeward.sources.change_logs.postgres_publication import Publication
from lakeward.sources.change_logs.postgres_slot import Beginning, Identity, SlotStream, created_slot, log_end
from lakeward.sources.change_logs.postgres_table import LoggedTable
from lakeward.sources.connector import Position, Snapshot, SourceTable
from lakeward.sources.connectors.postgres import PostgresSource

QUERIES = Queries.beside(__file__)

_LABEL = re.compile(r"[a-z0-9_]{1,40}")
_NO_RIGHT = re.compile("permission denied|must be superuser or replication role")
_IN_USE = "55006"
_LOOK_SECONDS = 30.0
"""A table that is dropped or renamed is not told of in the log, so that it is looked for all so many seconds."""
_READER_LEAVES = 5.0
"""Seconds that the server may take to notice that a reader has left."""


class PostgresChangeLog(ChangeLog):
    """Logical replication of PostgreSQL, 14 or newer, by a publication and a slot `lakeward_<label>`."""

    name: ClassVar[str] = PostgresSource.name

    def __init__(self, source: PostgresSource, label: str) -> None:
        if not _LABEL.fullmatch(label):
            raise SettingsError(
                f"{label!r} can't be part of a replication slot's name",
                safe="nothing was done",
                next_step="use up to 40 lower-case letters, digits and _",
            )
        self._source = source
        self._database = source.database
        self._errors = source.errors
        self._slot = f"lakeward_{label}"
        self._publication = Publication(self._database, self._errors, self._slot)
        self._stream: SlotStream | None = None
        self._acknowledged: LogPosition | None = None

    @classmethod
    def made(cls, options: BaseModel, allowed: Allowed, label: str) -> PostgresChangeLog:
        """Return the log of the database that a URL names; it is reached when it is asked for something."""
        return cls(PostgresSource.made(options, allowed), label)

    def state(self) -> LogState | None:
        """Ask the catalog. A publication without its slot is a log that was lost."""
        with self._errors.named():
            published, slot = self._publication.published(), self._slot_state()
        if published is None and slot is None:
            return None
        tables = published.tables if published is not None else ()
        if slot is None:
            return LogState(self._slot, tables, lag_bytes=0, active=False, lost=True)
        return LogState(self._slot, tables, slot.lag_bytes, slot.active, slot.lost)

    @contextmanager
    def begin(self, tables: Sequence[SourceTable]) -> Iterator[tuple[Snapshot, Position]]:
        """Publish the tables, make a slot, a temporary one if ours is there, and hold the snapshot of its beginning.

        A slot begins when every transaction that ran when it was asked for has ended. So a transaction that wrote to a
        table before the table was published is in the snapshot as a whole, and every later one in the log as a whole.
        """
        with self._alone(), ExitStack() as held:
            with self._errors.named():
                server = self._publication.check_server()
                missing = [name for name, there in self._publication.check_tables(tables).items() if not there]
                fresh = not self._is_whole()
                if fresh:
                    self._remove_slot()
                elif missing:
                    self._publication.check_addition(server)
                held.push(self._undoing(fresh, missing))
                self._publication.publish([table for table in tables if table.full_name in missing], server)
                if fresh:
                    self._publication.note(None)
            with self._created(fresh, server) as begun:
                snapshot = held.enter_context(self._source.snapshot(begun.snapshot))
                if fresh:
                    with self._errors.named():
                        self._publication.note(begun.place)
            yield snapshot, LogPosition(begun.server, begun.place).to_json()

    def follow(self, tables: Sequence[FollowedTable], wait_seconds: float = 1.0) -> Iterator[Changes]:
        """Read the slot. While the reader is busy, nothing is buffered here: the server waits."""
        self._end_stream()
        with self._errors.named():
            slot, since = self._readable()
        oids = self._oids(tables)
        stream = self._opened()
        try:
            self._check_positions(tables, stream.server, since, slot.now)
            if self._acknowledged is not None and self._acknowledged.server == stream.server:
                stream.acknowledge(self._acknowledged.place)
            logged = [
                LoggedTable(each, oids[each.table.full_name], LogPosition.read(each.after).place) for each in tables
            ]
            follower = Follower(stream, slot.confirmed, logged, self._publication.columns)
            look = time.monotonic() + _LOOK_SECONDS
            for changes in follower.changes(wait_seconds):
                yield changes
                if time.monotonic() >= look:
                    self._oids(tables)
                    look = time.monotonic() + _LOOK_SECONDS
        except psycopg2.Error as error:
            # A server that goes away leaves the driver without a word of its own.
            said = "" if "no message from the libpq" in str(error) else f": {str(error).strip()}"
            raise self._errors.said(f"it ended the stream{said}", "see that it runs, then repeat") from None
        except Unreadable as error:
            raise self._errors.said(f"it sent what can't be read: {error}") from None
        finally:
            stream.close()

    def reaches(self, position: Position, other: Position) -> bool:
        """Compare the places; positions of different servers do not reach each other."""
        first, second = LogPosition.read(position), LogPosition.read(other)
        return first.server == second.server and first.place >= second.place

    def end(self) -> Position:
        """Ask a replication session, which says both where the log ends and whose it is."""
        try:
            server, place = log_end(self._database.libpq_url)
        except psycopg2.Error as error:
            raise self._errors.of(error) from None
        return LogPosition(server, place).to_json()

    def acknowledge(self, position: Position) -> None:
        """Tell the server now if it is read from, else when it is next."""
        self._acknowledged = LogPosition.read(position)
        if self._stream is not None:
            self._stream.acknowledge(self._acknowledged.place)

    def forget(self, tables: Sequence[str]) -> None:
        """Take the tables out of the publication."""
        with self._errors.named():
            self._publication.forget(tables)

    def drop(self) -> None:
        """Drop the slot, then the publication: without its slot it costs nothing, and shows that something was left."""
        self._end_stream()
        with self._errors.named():
            self._remove_slot()
            self._publication.drop()

    def close(self) -> None:
        """Close the stream, and what the catalog was asked through."""
        self._end_stream()
        self._source.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Refuse to begin while another process does: the second would take the slot of the first for a lost one.

        Raises:
            SourceError: one does.
        """
        with self._errors.named():
            connection = psycopg.connect(self._database.libpq_url, autocommit=True)
        try:
            with self._errors.named():
                [(alone,)] = connection.execute(QUERIES.for_driver("begins"), {"name": self._slot}).fetchall()
            if not alone:
                raise self._errors.said(
                    f"another process begins the log {self._slot} now, and copies tables",
                    "let one process follow it; or repeat when the copy is done",
                )
            yield
        finally:
            connection.close()

    def _reader(self) -> str | None:
        """Say who reads the slot; None: it can't be seen."""
        with self._errors.named():
            for row in self._database.fetch(QUERIES["reader"], {"name": self._slot}):
                where = f" at {row.address}" if row.address else ""
                return f"{row.name}{where}, since {row.since:%Y-%m-%d %H:%M:%S}"
        return None

    def _slot_state(self) -> Any:
        """Return the slot as the catalog has it; None: there is none."""
        return next(iter(self._database.fetch(QUERIES["slot"], {"name": self._slot})), None)

    def _is_whole(self) -> bool:
        """Say whether there is a slot that everything since its beginning can be read from."""
        published, slot = self._publication.published(), self._slot_state()
        return published is not None and published.since is not None and slot is not None and not slot.lost

    def _remove_slot(self) -> None:
        """Drop the slot. A server needs a moment to see that its reader left."""
        deadline = time.monotonic() + _READER_LEAVES
        while (slot := self._slot_state()) is not None:
            if not slot.active or time.monotonic() > deadline:
                self._database.fetch(QUERIES["drop_slot"], {"name": self._slot})
                return
            time.sleep(0.05)

    def _undoing(self, fresh: bool, missing: Sequence[str]) -> Callable[..., None]:
        """Return what takes back, where the block of a beginning fails, what it changed at the source."""
        new = self._publication.published() is None

        def undo(kind: type[BaseException] | None, *_: object) -> None:
            if kind is None:
                return
            # A server that went away keeps it; `state` tells.
            with suppress(SourceError), self._errors.named():
                if fresh:
                    self._remove_slot()
                if new:
                    self._publication.drop()
                else:
                    self._publication.forget(missing)

        return undo

    @contextmanager
    def _created(self, fresh: bool, server: Any) -> Iterator[Beginning]:
        name = self._slot if fresh else f"{self._slot}_{secrets.token_hex(4)}"
        try:
            with created_slot(self._database.libpq_url, name, temporary=not fresh) as begun:
                yield begun
        except psycopg2.Error as error:
            raise self._refused(error, server) from None

    def _refused(self, error: psycopg2.Error, server: Any) -> SourceError:
        text = str(error).strip()
        if not server.replicates and error.pgcode is None and _NO_RIGHT.search(text):
            return self._errors.said(
                f"{server.user} may not read its log: {text}",
                f"ALTER ROLE {server.user} REPLICATION, or what the server's vendor has instead; then repeat",
                final=True,
            )
        if "max_wal_senders" in text:
            return self._errors.said(text, "set max_wal_senders higher and restart the server, then repeat")
        return self._errors.of(error)

    def _readable(self) -> tuple[Any, int]:
        """Return the slot, and where in the log it begins.

        Raises:
            SourceError: there is none, or not any more.
        """
        published, slot = self._publication.published(), self._slot_state()
        if published is None and slot is None:
            raise self._errors.said(f"there is no log {self._slot}", "begin to follow tables", final=True)
        if published is None or published.since is None or slot is None or slot.lost:
            raise self._errors.said(
                f"the log {self._slot} was lost: the server has thrown away what was not read yet",
                "follow its tables anew, which copies them; a higher max_slot_wal_keep_size keeps more",
                final=True,
            )
        if not published.whole:
            raise self._errors.said(
                f"somebody changed the publication {self._slot}, which has not every change of its tables any more",
                "drop the log, and follow its tables anew, which copies them",
                final=True,
            )
        return slot, published.since

    def _oids(self, tables: Sequence[FollowedTable]) -> dict[str, int]:
        """Return by full name what the log knows the tables by.

        Raises:
            SchemaError: it has some of them no more.
        """
        with self._errors.named():
            oids = self._publication.oids([followed.table for followed in tables])
        gone = [each.table.full_name for each in tables if each.table.full_name not in oids]
        if gone:
            raise SchemaError(
                f"{', '.join(gone)}: the source has no such table any more that it logs; it was dropped or renamed",
                safe="nothing was read",
                next_step="follow it no more; or follow it anew under its new name",
                tables=gone,
            )
        return oids

    def _opened(self) -> SlotStream:
        try:
            self._stream = SlotStream(self._database.libpq_url, self._slot, self._slot)
        except psycopg2.Error as error:
            if error.pgcode == _IN_USE:
                text = f"somebody else reads the log {self._slot}: {self._reader() or str(error).strip()}"
                raise self._errors.said(
                    text, "let one process follow it; a reader that died is given up soon"
                ) from None
            raise self._errors.of(error) from None
        return self._stream

    def _check_positions(self, tables: Sequence[FollowedTable], server: Identity, since: int, now: int) -> None:
        """Refuse positions in the log of another server, or in one that is gone.

        Raises:
            SourceError: with the tables.
        """
        positions = {each.table.full_name: LogPosition.read(each.after) for each in tables}
        if other := [name for name, each in positions.items() if each.server != server or each.place > now]:
            raise self._errors.said(
                f"it is not the server that {', '.join(other)} were followed at: it was restored, or a standby rose",
                "follow them anew, which copies them",
                final=True,
            )
        if lost := [name for name, each in positions.items() if each.place < since]:
            raise self._errors.said(
                f"its log {self._slot} was made after changes of {', '.join(lost)} that were not read",
                "follow them anew, which copies them",
                final=True,
            )

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None
