"""Keeps a transaction in one process's hands while it asks a catalog for what can't be taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from lakeward.control.ledger import Ledger
from lakeward.control.records import Claim
from lakeward.errors import LeaseLost

Guard = Callable[[], AbstractContextManager[None]]
"""Entered around one request. Raises LeaseLost, and nothing is asked, if another process has taken over."""


def guard_of(ledger: Ledger, claim: Claim, dataset: str) -> Guard:
    """Return the guard of an open transaction.

    The transaction's row is locked until the answer is there, so whoever takes over waits for it; for a process that
    was stopped in between they wait two seconds, and then end its session in Postgres.

    Args:
        ledger: holds the transaction.
        claim: the owner's.
        dataset: its name, for the error.
    """

    @contextmanager
    def guard() -> Iterator[None]:
        with ledger.database.driver() as connection, connection.transaction():
            if not ledger.holds(connection, claim):
                raise LeaseLost(
                    f"the move of dataset {dataset} was taken over: its lease ran out",
                    safe="whoever took it over finishes it",
                    next_step="lakeward move status",
                    dataset=dataset,
                )
            yield

    return guard
