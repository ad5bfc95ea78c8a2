"""Threads that run one at a time, from one named place to the next, as a scheduler chooses: simulations that replay.

Each actor runs the product's real code in a thread of its own and stops wherever it asks the database, waits, or passes
a step of the write protocol, always outside of Postgres transactions: so no actor that stands still holds a lock that
another one could wait for, and between two stops it is alone. What is chosen from a seed is then a whole schedule.

An actor can also be crashed where it stands: from then on nothing that it does has an effect, not even its cleaning up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import psycopg
import sqlalchemy

from lakeward.control.db import Database, Pipeline
from lakeward.errors import DatabaseUnavailable

STUCK_SECONDS = 30.0
"""An actor that does not stop for so long waits for a lock, which no place to stop may allow."""

Trouble = Literal["refused", "answer lost", "interrupted"]
"""What can befall an actor: a database transaction is never begun, or it is committed and nobody says so; or wherever
the actor stands it is interrupted, as by Ctrl-C, and cleans up."""


class Crashed(BaseException):
    """Ends a crashed actor. Nothing in the product catches it, and whatever still runs meets it again."""


class Interrupted(BaseException):
    """Ends an actor as Ctrl-C does: it still does whatever it does then."""


class Actor:
    """One thread that runs when it is told to.

    Args:
        name: for the schedule that is printed.
        body: what it does, given the actor; its result or exception is kept.
    """

    def __init__(self, name: str, body: Callable[[Actor], object]) -> None:
        self.name = name
        self._body = body
        self._turn = threading.Semaphore(0)
        self._stands = threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, name=f"actor-{name}", daemon=True)
        self._crashed = False
        self._trouble: Trouble | None = None
        self.place = "start"
        """Where it stands."""
        self.done = False
        self.error: BaseException | None = None
        """What its body raised."""
        self.result: object = None
        self._thread.start()

    # The scheduler's side --------------------------------------------------------------------------------------------

    def step(self, trouble: Trouble | None = None) -> None:
        """Let it run to its next place, or to its end.

        Args:
            trouble: befalls it now; that of a transaction, only if it begins one now.
        """
        assert not self.done, f"{self.name} has ended"
        self._trouble = trouble
        self._turn.release()
        if not self._stands.acquire(timeout=STUCK_SECONDS):
            raise TimeoutError(f"{self.name} does not come on from {self.place}")

    def crash(self) -> None:
        """End it where it stands."""
        self._crashed = True
        while not self.done:
            self.step()

    # The actor's side ------------------------------------------------------------------------------------------------

    def stop_at(self, place: str) -> Trouble | None:
        """Stand still until the next turn; return what is to befall it.

        Raises:
            Crashed: it never gets on from here.
            Interrupted: once, here.
        """
        if threading.current_thread() is not self._thread:
            return None  # a heartbeat, which has nothing to do while simulated leases don't end by themselves
        if not self._crashed:
            self.place = place
            self._stands.release()
            self._turn.acquire()
        if self._crashed:
            raise Crashed(self.name)
        trouble, self._trouble = self._trouble, None
        if trouble == "interrupted":
            raise Interrupted(self.name)
        return trouble

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self._crashed:
                self.result = self._body(self)
        except BaseException as error:
            self.error = error
        self.done = True
        self.place = "end"
        self._stands.release()


class ActorFaults:
    """Stops an actor at every step of the write protocol."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor

    def at(self, step: str) -> None:
        """Stop there."""
        self._actor.stop_at(step)


class ActorClock:
    """An actor's own clock, which goes on only when it sleeps: whoever waits in the product takes one more turn."""

    def __init__(self, actor: Actor) -> None:
        self._actor = actor
        self._now = 0.0

    def monotonic(self) -> float:
        """Return the seconds slept so far."""
        return self._now

    def sleep(self, seconds: float) -> None:
        """Stop, and be `seconds` later."""
        self._now += seconds
        self._actor.stop_at("sleep")


class ActorDatabase(Database):
    """A database as one actor sees it: it stops before every transaction.

    Args:
        database: the real one, whose connections all actors share.
        actor: whose it is.
    """

    def __init__(self, database: Database, actor: Actor) -> None:
        self.__dict__.update(database.__dict__)
        self._actor = actor

    @contextmanager
    def transaction(self) -> Iterator[sqlalchemy.Connection]:
        """One transaction, to which trouble may happen."""
        with self._troubled("transaction"), super().transaction() as connection:
            yield connection

    @contextmanager
    def statement(self) -> Iterator[sqlalchemy.Connection]:
        """One statement, to which trouble may happen as to a transaction."""
        with self._troubled("transaction"), super().statement() as connection:
            yield connection

    @contextmanager
    def pipeline(self) -> Iterator[Pipeline]:
        """One transaction sent at once, to which trouble may happen."""
        with self._troubled("transaction"), super().pipeline() as pipeline:
            yield pipeline

    @contextmanager
    def driver(self) -> Iterator[psycopg.Connection[Any]]:
        """One connection of the driver, to which trouble may happen."""
        with self._troubled("driver"), super().driver() as connection:
            yield connection

    @contextmanager
    def _troubled(self, place: str) -> Iterator[None]:
        trouble = self._actor.stop_at(place)
        if trouble == "refused":
            raise DatabaseUnavailable("simulated: the transaction was never begun")
        yield
        if trouble == "answer lost":
            raise DatabaseUnavailable("simulated: the transaction was committed, and its answer was lost")
