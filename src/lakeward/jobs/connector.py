"""Lets procrastinate use the workspace's own connections, and hear of new jobs where Postgres can tell.

The package's own connector would keep a pool besides ours, with prepared statements and a search path, neither of which
a pooler in transaction mode keeps. Through `Database` its statements are like all others of ours: they name their
schema, and what goes wrong has our names.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import psycopg
import sqlalchemy
from procrastinate import connector, exceptions, manager
from procrastinate.sql import queries
from psycopg import sql
from psycopg.types.json import Jsonb

from lakeward.control.db import Database
from lakeward.control.job_schema import qualified

LOOK_SECONDS = 0.15
"""How often a worker looks for jobs where a pooler keeps it from hearing of them."""

AGAIN_SECONDS = 1.0
"""After how long a session that listens is begun again, when it has ended."""

_QUIET_SECONDS = 30.0

log = logging.getLogger("lakeward.jobs")
Answer = TypeVar("Answer")


class WorkspaceConnector(connector.BaseAsyncConnector):
    """Runs procrastinate's statements on a workspace's database.

    Args:
        database: whose.
        threads: how many of a worker's statements run at a time.
    """

    def __init__(self, database: Database, threads: int = 2) -> None:
        self._database = database
        # Not those that jobs run in: when all of them are busy, a worker still has to say that it lives.
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="lakeward-queue")
        self._look = asyncio.Event()

    def get_sync_connector(self) -> connector.BaseConnector:
        """Return this one: it does both."""
        return self

    def close(self) -> None:
        """Let its threads end."""
        self._threads.shutdown()

    # Statements ------------------------------------------------------------------------------------------------------

    def execute_query(self, query: str, **arguments: Any) -> None:
        """Run a statement."""
        with self._database.statement() as connection:
            _execute(connection, query, arguments)

    def execute_query_one(self, query: str, **arguments: Any) -> dict[str, Any]:
        """Run a statement, and return its first row."""
        return _first(self.execute_query_all(query, **arguments))

    def execute_query_all(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        """Run a statement, and return its rows."""
        with self._database.statement() as connection:
            return _rows(connection, query, arguments)

    def execute_query_one_with_connection(
        self, connection: sqlalchemy.Connection, query: str, **arguments: Any
    ) -> dict[str, Any]:
        """Run a statement in a transaction of ours, and return its first row."""
        return _first(_rows(connection, query, arguments))

    def execute_query_all_with_connection(
        self, connection: sqlalchemy.Connection, query: str, **arguments: Any
    ) -> list[dict[str, Any]]:
        """Run a statement in a transaction of ours, and return its rows."""
        return _rows(connection, query, arguments)

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        """Run a statement in a thread."""
        await self._in_thread(lambda: self.execute_query(query, **arguments))
        if query in _LETS_OTHERS_BEGIN:
            # What waited for its lock is not told of otherwise, and would be found by the next look only.
            await self._in_thread(lambda: self.execute_query(_WAKE, channel=_ANY_QUEUE, message=ANY_JOB))
            self._look.set()

    async def execute_query_one_async(self, query: str, **arguments: Any) -> dict[str, Any]:
        """Run a statement in a thread, and return its first row."""
        return await self._in_thread(lambda: self.execute_query_one(query, **arguments))

    async def execute_query_all_async(self, query: str, **arguments: Any) -> list[dict[str, Any]]:
        """Run a statement in a thread, and return its rows."""
        return await self._in_thread(lambda: self.execute_query_all(query, **arguments))

    async def _in_thread(self, run: Callable[[], Answer]) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, run)

    # Hearing ---------------------------------------------------------------------------------------------------------

    async def listen_notify(self, on_notification: connector.Notify, channels: Iterable[str]) -> None:
        """Tell of what is notified, until it is cancelled; behind a pooler, again and again that something may be.

        A session that ends is begun anew: were its error raised, the worker would end.
        """
        names = list(dict.fromkeys((*channels, _ANY_QUEUE)))
        while True:
            try:
                async with self._session() as session:
                    if session is None:
                        log.debug("jobs are looked for every %s s: a pooler stands before Postgres", LOOK_SECONDS)
                        while True:
                            with suppress(TimeoutError):
                                await asyncio.wait_for(self._look.wait(), LOOK_SECONDS)
                            self._look.clear()
                            await on_notification(channel=names[0], payload=ANY_JOB)
                    await _listen(session, on_notification, names)
            except (psycopg.OperationalError, OSError) as error:
                # Not its text, which may quote the connection string.
                log.info(
                    "the session that listens for jobs has ended (%s); another one will do so", type(error).__name__
                )
                await asyncio.sleep(AGAIN_SECONDS)

    @asynccontextmanager
    async def _session(self) -> AsyncIterator[psycopg.AsyncConnection[Any] | None]:
        """Open a session of our own; None: what answers is a pooler's, which the next transaction need not get."""
        own = await psycopg.AsyncConnection.connect(
            self._database.libpq_url, autocommit=True, application_name="lakeward jobs", prepare_threshold=None
        )
        async with own:
            answer = await (await own.execute("SELECT pg_backend_pid()")).fetchone()
            if answer == (own.info.backend_pid,):
                yield own
                return
        yield None


_ANY_QUEUE = "procrastinate_any_queue_v1"
_WAKE = "SELECT pg_notify(%(channel)s, %(message)s)"
_LETS_OTHERS_BEGIN = (queries["finish_job"], queries["retry_job"])

ANY_JOB = json.dumps({"type": "job_inserted", "job_id": 0})
"""What tells a worker to look for jobs."""


async def _listen(session: psycopg.AsyncConnection[Any], on_notification: connector.Notify, names: list[str]) -> None:
    for name in names:
        await session.execute(sql.SQL("LISTEN {}").format(sql.Identifier(name)))
    # What was queued before it listened was not told.
    await on_notification(channel=names[0], payload=ANY_JOB)
    while True:
        async for each in session.notifies(timeout=_QUIET_SECONDS):
            await on_notification(channel=each.channel, payload=each.payload)
        await session.execute("SELECT 1")


def _rows(connection: sqlalchemy.Connection, query: str, arguments: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in _execute(connection, query, arguments).mappings()]


def _execute(connection: sqlalchemy.Connection, query: str, arguments: dict[str, Any]) -> sqlalchemy.CursorResult[Any]:
    given = {name: _value(value) for name, value in arguments.items()}
    try:
        return connection.exec_driver_sql(qualified(query), given)
    except sqlalchemy.exc.IntegrityError as error:
        cause = error.orig
        if not isinstance(cause, psycopg.errors.UniqueViolation):
            raise
        name = cause.diag.constraint_name
        lock = (cause.diag.message_detail or "") if name == manager.QUEUEING_LOCK_CONSTRAINT else None
        raise exceptions.UniqueViolation(constraint_name=name, queueing_lock=lock) from error


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return Jsonb(value)
    if isinstance(value, list):
        return [_value(each) for each in value]
    return tuple(_value(each) for each in value) if isinstance(value, tuple) else value


def _first(rows: list[dict[str, Any]]) -> dict[str, Any]:
    if not rows:
        raise exceptions.NoResult
    return rows[0]
