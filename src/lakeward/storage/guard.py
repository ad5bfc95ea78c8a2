"""Keeps a transaction in one process's hands while it asks a catalog for what can't be taken back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import psycopg

from lakeward.control.ledger import Ledger
from lakeward.control.records import Claim
from lakeward.errors import LeaseLost


class Held:
    """A transaction whose row is locked, as long as Postgres has not ended our session.

    Args:
        ledger: holds the transaction.
        connection: that has the lock.
        claim: the owner's.
        dataset: its name, for the error.
    """

    def __init__(self, ledger: Ledger, connection: psycopg.Connection[Any], claim: Claim, dataset: str) -> None:
        self._ledger = ledger
        self._connection = connection
        self._claim = claim
        self._dataset = dataset

    def check(self) -> None:
        """Ask once more, at the last moment, where something came between.

        Raises:
            LeaseLost: another process has taken over.
        """
        try:
            held = self._ledger.holds(self._connection, self._claim)
        except psycopg.OperationalError as error:
            raise self._lost() from error
        if not held:
            raise self._lost()

    def execute(self, query: str, values: Mapping[str, object]) -> int:
        """Run a statement under the lock, which comes true with its release and not without it.

        Args:
            query: one of `Queries.for_driver`.
            values: of its parameters.

        Returns:
            How many rows it changed.

        Raises:
            LeaseLost: another process has taken over.
        """
        try:
            return self._connection.execute(query, values).rowcount
        except psycopg.OperationalError as error:
            # Who waits for the lock ends our session.
            raise self._lost() from error

    def _lost(self) -> LeaseLost:
        return LeaseLost(
            f"the move of dataset {self._dataset} was taken over: its lease ran out",
            safe="whoever took it over finishes it",
            next_step="lakeward move status",
            dataset=self._dataset,
        )


Guard = Callable[[], AbstractContextManager[Held]]
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
    def guard() -> Iterator[Held]:
        with ledger.database.driver() as connection, connection.transaction():
            held = Held(ledger, connection, claim, dataset)
            held.check()
            yield held

    return guard
