"""Keeps a few idle ADBC connections: to make one takes a dozen round trips, most of them to learn about types."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import adbc_driver_manager
import adbc_driver_postgresql.dbapi
from adbc_driver_manager.dbapi import Connection, Cursor
from adbc_driver_postgresql import StatementOptions

IDLE = 4
"""So many idle connections are kept."""

ANSWER_BYTES = 4 << 20
"""So much of an answer is in one batch, before it is decoded; of the usual 16 MiB memory holds some copies."""

_HINT = StatementOptions.BATCH_SIZE_HINT_BYTES.value


class AdbcPool:
    """Connections for reading. For all threads; each reader has one to itself.

    An idle one is in no transaction, so that it holds nothing in the server, nor a place behind a pooler.

    Args:
        url: of the database, for libpq.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._idle: list[Connection] = []
        self._closed = False

    @contextmanager
    def executed(self, query: str) -> Iterator[Cursor]:
        """Run a query, and yield the cursor to fetch its result from.

        A connection is used again if the block ends well, and closed if not: whatever is then in it stays there.
        """
        connection, cursor = self._execute(query)
        try:
            yield cursor
            cursor.close()
            # Ends the transaction, and begins no other one.
            connection.adbc_connection.set_autocommit(True)
        except BaseException:
            _close(connection)
            raise
        with self._lock:
            if not self._closed and len(self._idle) < IDLE:
                self._idle.append(connection)
                return
        _close(connection)

    def close(self) -> None:
        """Close what is idle now, and later what is in use now."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            _close(connection)

    def _execute(self, query: str) -> tuple[Connection, Cursor]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        if connection is not None:
            try:
                # Parse and execute must reach one and the same server session, also behind a pooler.
                connection.adbc_connection.set_autocommit(False)
                return connection, _run(connection, query)
            except adbc_driver_manager.Error:
                # Its server may have gone since, and with it that of all others that are idle. If it is the query that
                # is wrong, the new connection says so, too.
                _close(connection)
                with self._lock:
                    idle, self._idle = self._idle, []
                for other in idle:
                    _close(other)
        connection = adbc_driver_postgresql.dbapi.connect(self._url)
        try:
            return connection, _run(connection, query)
        except BaseException:
            _close(connection)
            raise


def _run(connection: Connection, query: str) -> Cursor:
    cursor = connection.cursor()
    try:
        cursor.adbc_statement.set_options(**{_HINT: str(ANSWER_BYTES)})
        cursor.execute(query)
    except BaseException:
        cursor.close()
        raise
    return cursor


def _close(connection: Connection) -> None:
    with suppress(adbc_driver_manager.Error):
        connection.close()
