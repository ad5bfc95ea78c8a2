"""A replication slot of PostgreSQL: made with the snapshot of its beginning, and read as a stream of messages.

The server ends a connection whose reader was silent for `wal_sender_timeout`, also while it waits for the reader to
take more. So a thread says how far the reader is as long as the stream is open, whatever the reader does meanwhile.
It never reads: the messages wait in the server, and memory does not grow.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psycopg2
import psycopg2.extensions
import psycopg2.extras
from psycopg import sql

from lakeward.sources.change_logs.postgres_text import SESSION

LONGEST_SILENCE = 10.0
"""Seconds after which the server is told how far the reader is, at the latest."""

_NETWORK = {
    "keepalives_idle": "30",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    # By which a second reader is told who the first one is; PostgreSQL keeps 63 bytes.
    "application_name": f"lakeward, process {os.getpid()} of {socket.gethostname()}"[:63],
}
_CREATE = sql.SQL("CREATE_REPLICATION_SLOT {} {} LOGICAL pgoutput EXPORT_SNAPSHOT")
_KEPT, _TEMPORARY = sql.SQL(""), sql.SQL("TEMPORARY")


@dataclass(frozen=True)
class Identity:
    """Which server's log it is.

    Args:
        system: the identifier of the server's data.
        timeline: which continuation of it.
        database: the slot's.
    """

    system: str
    timeline: int
    database: str


@dataclass(frozen=True)
class Beginning:
    """Where a slot begins.

    Args:
        server: whose it is.
        place: in the log; what was committed before is in the snapshot, and nothing else.
        snapshot: the name by which other sessions can take it over.
    """

    server: Identity
    place: int
    snapshot: str


def to_place(text: str) -> int:
    """Return a place in the log, printed as `16/B374D848`, as a number."""
    high, low = text.split("/")
    return (int(high, 16) << 32) | int(low, 16)


@contextmanager
def created_slot(url: str, name: str, temporary: bool) -> Iterator[Beginning]:
    """Make a slot, once every transaction that runs now has ended. Its snapshot can be taken over within the context.

    Raises:
        psycopg2.Error: it can't be made.
    """
    connection = _connected(url, asynchronous=True)
    try:
        cursor = connection.cursor()
        server = _identity(_asked(connection, cursor, "IDENTIFY_SYSTEM"))
        create = _CREATE.format(sql.Identifier(name), _TEMPORARY if temporary else _KEPT)
        _, place, snapshot, _ = _asked(connection, cursor, create.as_string())
        yield Beginning(server, to_place(place), snapshot)
    finally:
        connection.close()


def log_end(url: str) -> tuple[Identity, int]:
    """Return whose log it is, and where it ends.

    Raises:
        psycopg2.Error: the server can't be reached.
    """
    connection = _connected(url)
    try:
        cursor = connection.cursor()
        cursor.execute("IDENTIFY_SYSTEM")
        row = cursor.fetchone()
        return _identity(row), to_place(row[2])
    finally:
        connection.close()


class SlotStream:
    """The messages of a slot, from what was acknowledged on. Used by one thread.

    Args:
        url: of the server, with the password.
        slot, publication: names.

    Raises:
        psycopg2.Error: it can't be reached, or somebody else reads.
    """

    def __init__(self, url: str, slot: str, publication: str) -> None:
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._acknowledged = 0
        self._connection = _connected(url)
        try:
            self._cursor = self._connection.cursor()
            self._cursor.execute("IDENTIFY_SYSTEM")
            self.server = _identity(self._cursor.fetchone())
            self._cursor.execute("SHOW wal_sender_timeout")
            self._silence = _silence(self._cursor.fetchone()[0])
            names = sql.Identifier(publication).as_string()
            self._cursor.start_replication(
                slot_name=slot, options={"proto_version": "1", "publication_names": names}, decode=False
            )
        except BaseException:
            self._connection.close()
            raise
        self._speaker = threading.Thread(target=self._speak, name=f"lakeward-slot-{slot}", daemon=True)
        self._speaker.start()

    def read(self, until: float) -> bytes | None:
        """Return the next message; None: there was none until then, as `time.monotonic` counts.

        Raises:
            psycopg2.Error: the server went away.
        """
        while True:
            with self._lock:
                message = self._cursor.read_message()
            if message is not None:
                return bytes(message.payload)
            left = until - time.monotonic()
            if left <= 0:
                return None
            select.select([self._connection.fileno()], [], [], left)

    @property
    def looked_at(self) -> int:
        """Up to where the server has looked for changes; only to be asked when all messages were read."""
        return int(self._cursor.wal_end)

    def acknowledge(self, place: int) -> None:
        """Tell the server that it may forget the log up to there. A server that went away is noticed by `read`."""
        with self._lock:
            self._acknowledged = max(place, self._acknowledged)
            with suppress(psycopg2.Error):
                self._tell()

    def close(self) -> None:
        """Stop reading; repeating it does nothing."""
        self._ended.set()
        self._speaker.join()
        with self._lock:
            self._connection.close()

    def _tell(self) -> None:
        self._cursor.send_feedback(flush_lsn=self._acknowledged, force=True)

    def _speak(self) -> None:
        while not self._ended.wait(self._silence):
            with self._lock, suppress(psycopg2.Error):
                self._tell()


def _connected(url: str, asynchronous: bool = False) -> Any:
    given = psycopg2.extensions.parse_dsn(url)
    session = " ".join(f"-c {name}={value}" for name, value in SESSION.items())
    settings: Mapping[str, Any] = {
        **_NETWORK,
        **given,
        "options": f"{given.get('options', '')} {session}".strip(),
        "client_encoding": "UTF8",
    }
    connection = psycopg2.connect(
        connection_factory=psycopg2.extras.LogicalReplicationConnection, async_=asynchronous, **settings
    )
    if asynchronous:
        _wait(connection)
    return connection


def _asked(connection: Any, cursor: Any, command: str) -> Any:
    """Return the one row that answers a command. Signals are seen while it is waited for."""
    try:
        cursor.execute(command)
        _wait(connection)
    except BaseException:
        with suppress(psycopg2.Error):
            connection.cancel()
        raise
    return cursor.fetchone()


def _wait(connection: Any) -> None:
    while (state := connection.poll()) != psycopg2.extensions.POLL_OK:
        reads = [connection.fileno()] if state == psycopg2.extensions.POLL_READ else []
        writes = [connection.fileno()] if state == psycopg2.extensions.POLL_WRITE else []
        select.select(reads, writes, [], 1.0)


def _identity(row: tuple[Any, ...]) -> Identity:
    system, timeline, _, database = row
    return Identity(str(system), int(timeline), str(database))


def _silence(patience: str) -> float:
    """Return the seconds within which the server wants to hear of us, from how it prints `wal_sender_timeout`."""
    number = int("".join(filter(str.isdigit, patience)) or 0)
    unit = patience.lstrip("0123456789")
    seconds = number * {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}.get(unit, 0.001)
    return min(LONGEST_SILENCE, seconds / 4) if seconds else LONGEST_SILENCE
