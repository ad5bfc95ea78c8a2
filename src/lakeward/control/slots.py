"""Hands out each dataset's one open slot in the order of arrival, and says who holds it when waiting takes too long."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from lakeward import stopping
from lakeward.clock import Clock
from lakeward.control.db import Database, Queries
from lakeward.control.leases import Owner
from lakeward.control.ledger import Ledger
from lakeward.control.records import Intent, OpenTransaction
from lakeward.errors import LockTimeout, StorageError

QUERIES = Queries.beside(__file__)

FIRST_POLL_SECONDS = 0.005
LONGEST_POLL_SECONDS = 0.1
ALIVE_SECONDS = 5.0
"""A waiter that has not looked for so long is passed by: it was killed, or is stopped."""
IN_FRONT_KINDS = ("route", "move")
"""Wait for the write that is under way, and not for those that wait: they take no time."""
IN_FRONT_ALIVE_SECONDS = 0.5
"""Shorter than for others, because whoever dies there keeps all of them waiting."""


class Slots:
    """Waits for datasets' slots.

    Polling, not NOTIFY: a session that listens can't be had from a pooler in transaction mode.

    Args:
        database: where the line of waiters is.
        ledger: opens the transaction when it is our turn.
        clock: for waiting; it decides nothing.
        timeout_seconds: how long a writer waits.
    """

    def __init__(self, database: Database, ledger: Ledger, clock: Clock, *, timeout_seconds: float = 300.0) -> None:
        self._database = database
        self._ledger = ledger
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    def take(self, intent: Intent, tidy: Callable[[], object]) -> OpenTransaction:
        """Open a transaction as soon as it is this writer's turn.

        Args:
            intent: what to open.
            tidy: called when the slot is taken: removes what a dead holder left, and says whether there was anything.

        Raises:
            LockTimeout: it has waited too long, or would have to wait for a backfill; names the holder.
            Diverged: nothing may be written to the dataset now.
            Stopped: the work that it is for was stopped.
        """
        started = self._clock.monotonic()
        ticket: int | None = None
        poll = FIRST_POLL_SECONDS
        try:
            while True:
                opened = self._ledger.try_open(intent, ticket)
                if opened is None:
                    opened = self._tidied(intent, ticket, tidy)
                if opened is not None:
                    ticket = None  # given back in the same step
                    return opened
                self._refuse_beside_a_backfill(intent)
                waited = self._clock.monotonic() - started
                if waited >= self._timeout_seconds:
                    holders = self._database.fetch(QUERIES["holder"], {"dataset_id": intent.dataset_id})
                    raise _timeout(intent.dataset, waited, dict(holders[0]) if holders else None)
                stopping.check()
                ticket = self._stand(intent, ticket)
                self._clock.sleep(min(poll, self._timeout_seconds - waited))
                poll = min(poll * 2, LONGEST_POLL_SECONDS)
        finally:
            if ticket is not None:
                self._database.fetch(QUERIES["leave"], {"ticket": ticket, "dataset_id": intent.dataset_id})

    def _tidied(self, intent: Intent, ticket: int | None, tidy: Callable[[], object]) -> OpenTransaction | None:
        try:
            return self._ledger.try_open(intent, ticket) if tidy() else None
        except StorageError:
            # It may be the mirror alone that does not answer. That falls behind, and nobody waits for it.
            if intent.kind != "write":
                raise
            opened = self._ledger.try_open(replace(intent, past_mirror=True), ticket)
            if opened is None:
                raise
            return opened

    def _refuse_beside_a_backfill(self, intent: Intent) -> None:
        """Raise LockTimeout if the arm is being backfilled: in the line, it would keep writers waiting as long."""
        if intent.arm is None:
            return
        key = {"dataset_id": intent.dataset_id, "arm": intent.arm, "kind": intent.kind}
        for found in self._database.fetch(QUERIES["backfill"], key):
            owner = Owner.from_json(found["owner"])
            raise LockTimeout(
                f"dataset {intent.dataset} is being backfilled by {owner} for {found['age_seconds']:.1f} s",
                safe="nothing was written, and the backfill goes on",
                next_step="repeat when it is through; `lakeward ledger list` shows it",
                dataset=intent.dataset,
                holder=str(owner),
                backfill=True,
            )

    def _stand(self, intent: Intent, ticket: int | None) -> int:
        """Keep the place in the line, or take one. A place that has lapsed meanwhile is kept, too."""
        in_front = intent.kind in IN_FRONT_KINDS
        alive = {"alive_seconds": IN_FRONT_ALIVE_SECONDS if in_front else ALIVE_SECONDS}
        if ticket is not None and self._database.fetch(QUERIES["still_there"], {"ticket": ticket, **alive}):
            return ticket
        stand = QUERIES["stand_in_front" if in_front else "stand"]
        return int(self._database.fetch(stand, {"dataset_id": intent.dataset_id, **alive})[0]["ticket"])


def _timeout(dataset: str, waited: float, holder: Mapping[str, Any] | None) -> LockTimeout:
    """Return the error of a writer that waited in vain, for the holder that the ledger names."""
    if holder is None:
        return LockTimeout(
            f"dataset {dataset} had other writers for {waited:.1f} s",
            safe="nothing was written",
            next_step="repeat, or raise ledger.lock_timeout_seconds",
            dataset=dataset,
        )
    owner = Owner.from_json(holder["owner"])
    what = f"pipeline {holder['pipeline']}" if holder["pipeline"] else holder["writer"]
    return LockTimeout(
        f"dataset {dataset} is being written by {owner} for {holder['age_seconds']:.1f} s "
        f"({what}, build {holder['build_id']}); waited {waited:.1f} s",
        safe="nothing was written",
        next_step="wait for it, or `lakeward ledger list` to see who holds what",
        dataset=dataset,
        holder=str(owner),
        host=owner.host,
        pid=owner.pid,
        age_seconds=holder["age_seconds"],
        build=str(holder["build_id"]),
    )
