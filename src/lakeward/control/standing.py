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
