"""How a workspace stands, in numbers that cost one question: for metrics, the doctor and whoever looks after it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class Standing:
    """How a workspace stands at one moment.

    Args:
        datasets: that there are, the dropped ones left out.
        diverged: those that another engine has written to.
        behind: those whose mirror does not hold the newest version.
        stale: those that were built from older versions of their sources than there are.
        open: transactions that are neither committed nor aborted.
        oldest_open_seconds: how long the oldest of them has been; 0: there is none.
        abandoned: those of them whose owner was silent for longer than its lease.
        unpublished: versions that other engines are not shown yet.
        flips: that go on.
    """

    datasets: int
    diverged: int
    behind: int
    stale: int
    open: int
    oldest_open_seconds: float
    abandoned: int
    unpublished: int
    flips: int


def standing(database: Database) -> Standing:
    """Return how the workspace of a database stands."""
    (row,) = database.fetch(QUERIES["standing"])
    return Standing(**row)


def clock_and_revision(database: Database) -> tuple[datetime, str]:
    """Return what the database's clock says, and the newest migration that its tables have."""
    (row,) = database.fetch(QUERIES["clock"])
    return row["now"], row["revision"]


@dataclass(frozen=True)
class Connected:
    """How a client is connected to the server.

    Args:
        version: of the server.
        port: where the session came in at the server itself; None: by a socket.
        connections: to this database, of all clients.
        most: how many the server allows.
        bytes: that the database has on disk.
        revision: the newest migration of its tables.
    """

    version: str
    port: int | None
    connections: int
    most: int
    bytes: int
    revision: str


@dataclass(frozen=True)
class AtWork:
    """Who works on jobs.

    Args:
        alive: workers that were heard of in the last minute.
        waiting: jobs that could run now.
    """

    alive: int
    waiting: int


def connected(database: Database) -> Connected:
    """Return how this process is connected."""
    (row,) = database.fetch(QUERIES["connection"])
    return Connected(**row)


def at_work(database: Database) -> AtWork:
    """Return who works on jobs."""
    (row,) = database.fetch(QUERIES["workers"])
    return AtWork(**row)
