"""Hears of changed flags at once, where Postgres can tell: on a session of its own, in a thread that waits for it.

A pooler gives each transaction another session, so nothing can be heard through it, and a session that was told to
listen would wake up whoever gets it next. That there is one can be seen: the process number that a connection is
greeted with is then not that of the session which answers. Nothing is asked of such a session, and the flags are as
fresh as the cache keeps them.
"""

from __future__ import annotations

import logging
import os
import select
import threading
from collections.abc import Callable

import psycopg
from psycopg import sql

from lakeward.clock import Clock
from lakeward.control.db import Database
from lakeward.control.flags.store import CHANNEL

LASTING_SECONDS = 1.0
"""A process that asks for flags for longer than this gets a listener; one that is soon gone needs no session for it."""

CLOSE_SECONDS = 2.0

NAME = "lakeward flags"
"""What the thread is called, and its session as the server shows it."""

log = logging.getLogger("lakeward.flags")


class FlagListener:
    """Listens, from the first look on that comes a while after the first one, until it is closed.

    Args:
        database: whose flags.
        clock: tells how long flags have been asked for.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._since: float | None = None
        self._thread: threading.Thread | None = None
        self._wake: tuple[int, int] | None = None
        self._closed = False
        self.hears = threading.Event()
        """Set while changes are heard of."""

    def asked(self, changed: Callable[[], None]) -> None:
        """Start to listen, if flags have been asked for long enough. Never waits, never fails.

        Args:
            changed: is called when flags have changed, or may have.
        """
        now = self._clock.monotonic()
        with self._lock:
            self._since = now if self._since is None else self._since
            if self._closed or self._thread is not None or now - self._since < LASTING_SECONDS:
                return
            self._wake = self._wake or os.pipe()
            self._thread = threading.Thread(target=self._run, args=(changed, self._wake[0]), name=NAME, daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop listening, and give the session back."""
        with self._lock:
            self._closed = True
            thread, wake = self._thread, self._wake
        if wake is None:
            return
        os.write(wake[1], b"x")
        # One that is still about to connect is not waited for: it ends as soon as it gets to the pipe.
        if thread is not None:
            thread.join(CLOSE_SECONDS)
        if thread is None or not thread.is_alive():
            for end in wake:
                os.close(end)

    def _run(self, changed: Callable[[], None], wake: int) -> None:
        try:
            # Not from the pool: this one is kept, and its session is told to listen.
            with psycopg.connect(self._database.libpq_url, autocommit=True, application_name=NAME) as own:
                self._listen(own, changed, wake)
        except psycopg.Error as error:
            # Not its text, which may quote the connection string.
            log.info("the session that listens for flags has ended (%s); another one will do so", type(error).__name__)
            with self._lock:
                self._thread, self._since = None, self._clock.monotonic()
            self.hears.clear()
            # What changes until then is not told.
            changed()

    def _listen(self, own: psycopg.Connection[tuple[object, ...]], changed: Callable[[], None], wake: int) -> None:
        session = own.execute("SELECT pg_backend_pid()").fetchone()
        if session != (own.info.backend_pid,):
            log.debug("flags are looked at every few seconds: a pooler stands before Postgres")
            return
        own.execute(sql.SQL("LISTEN {}").format(sql.Identifier(CHANNEL)))
        # What changed before it listened was not told.
        changed()
        self.hears.set()
        while True:
            readable, _, _ = select.select([own.fileno(), wake], [], [])
            if wake in readable:
                return
            for _ in own.notifies(timeout=0):
                changed()
