"""Moves a dataset's Iceberg table to another name in its catalog: metadata only, between two writes.

    open      the dataset's slot is taken, as a transaction of the ledger that makes no version
    begin     what is to be moved is said in Postgres, before anything happens in the catalog
    relocate  the catalog has the table under the new name, and under that alone
    finish    one Postgres transaction records where it is now, logs it, and ends the ledger's transaction

Readers go on meanwhile: whoever does not find a table looks again where it is recorded, and then where a move that is
under way brings it. A move is only ever finished, never taken back half way: a process that was stopped in the middle
and wakes up finds nothing left to do, and could otherwise do it again to a table that was put back. Recovery finishes
it; only what the catalog refuses before it has done anything is given up.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from lakeward.clock import Faults, Ids
from lakeward.control.deciding import lease_lost
from lakeward.control.ledger import Ledger
from lakeward.control.moves import Moves, Relocated, Relocation
from lakeward.control.records import Claim, Intent, OpenTransaction
from lakeward.control.slots import Slots
from lakeward.control.tree import DatasetRecord
from lakeward.errors import LeaseLost, MoveRefused
from lakeward.storage.arm import StorageArm
from lakeward.storage.guard import guard_of
from lakeward.storage.table import TableRef, table_ref

log = logging.getLogger("lakeward.moving")

ARM = "iceberg"
"""The arm whose tables have names."""

POINTS = ("move:opened", "move:begun", "move:relocated", "move:finished")
"""Every name that `Faults.at` is called with here, in order; the arm has more of its own in between."""


class Moving:
    """Moves tables.

    Args:
        ledger: holds the transactions.
        slots: hands out the datasets' slots.
        arms: by name.
        recover: tidies up what dead processes left of a dataset.
        faults: called between the steps.
        ids: makes build ids.
    """

    def __init__(
        self,
        ledger: Ledger,
        slots: Slots,
        arms: Mapping[str, StorageArm],
        recover: Callable[[int], object],
        faults: Faults,
        ids: Ids,
    ) -> None:
        self._ledger = ledger
        self._slots = slots
        self._moves = Moves(ledger.database)
        self._arms = arms
        self._finishing = Finishing(ledger, arms, faults)
        self._recover = recover
        self._faults = faults
        self._ids = ids

    def move(self, dataset: DatasetRecord, relocation: Relocation, *, writer: str = "move.apply") -> Relocated:
        """Move a dataset's table. Writers wait meanwhile, and then write to the new place.

        Args:
            dataset: which one.
            relocation: from where it is recorded, to where it is wanted.
            writer: the named place in the product that asks for it.

        Raises:
            MoveRefused: the table is not where the move starts, or the catalog can't do it, or has something else
                under the new name.
            LeaseLost: another process took over; it finishes the move.
            LockTimeout: a writer, or a backfill, did not end in time.
        """
        intent = Intent(
            dataset_id=dataset.id,
            dataset=dataset.name,
            kind="move",
            verb="move",
            build_id=self._ids.new(),
            writer=writer,
            arm=ARM,
        )
        opened = self._slots.take(intent, lambda: self._recover(dataset.id))
        try:
            self._faults.at("move:opened")
            if opened.identifier != relocation.source:
                raise _elsewhere(dataset, opened, relocation)
            self._moves.begin(opened, relocation)
        except BaseException as error:
            self._ledger.abort(opened.id, opened.fence, f"{type(error).__name__}: {error}")
            raise
        done = self._finishing.finish(table_ref(dataset), opened, relocation)
        if done is None:
            raise lease_lost(opened)
        return done

    def obstacle(self, dataset: DatasetRecord, relocation: Relocation) -> str | None:
        """Say what in the catalog is in the way of a move, as far as it can be known beforehand; None: nothing."""
        return self._arms[ARM].obstacle(table_ref(dataset), relocation)


class Finishing:
    """Brings a move that has begun to its end, in the hands of its owner or of recovery.

    Args:
        ledger: holds the transactions.
        arms: by name.
        faults: called between the steps.
    """

    def __init__(self, ledger: Ledger, arms: Mapping[str, StorageArm], faults: Faults) -> None:
        self._ledger = ledger
        self._moves = Moves(ledger.database)
        self._arms = arms
        self._faults = faults

    def resume(self, table: TableRef, claim: Claim) -> str | None:
        """Finish what a dead process began, for recovery.

        Returns:
            `moved`; `aborted`: nothing had happened, or the catalog refused it before it did anything; None: another
            process took over.

        Raises:
            StorageError: the catalog did not answer; the move stays open, and the next recovery goes on.
        """
        relocation = self._moves.of(claim.id)
        if relocation is None:
            return "aborted" if self._ledger.abort(claim.id, claim.fence, "its owner stopped before it began") else None
        try:
            return "moved" if self.finish(table, claim, relocation) is not None else None
        except MoveRefused:
            return "aborted"
        except LeaseLost:
            return None

    def finish(self, table: TableRef, claim: Claim, relocation: Relocation) -> Relocated | None:
        """Relocate and record it; None: another process took over, and does that.

        Raises:
            MoveRefused: the catalog can't, and has done nothing; the transaction is ended.
            LeaseLost: another process took over in the middle, and does it.
            StorageError: the catalog did not answer; the transaction is left to recovery.
        """
        with self._left_to_recovery(claim), self._ledger.heartbeat([claim]):
            self._faults.at("move:begun")
            guard = guard_of(self._ledger, claim, table.name)
            done = self._arms[ARM].relocate(table, relocation, guard)
            self._faults.at("move:relocated")
            recorded = self._moves.finish(claim, table.dataset_id, relocation, done)
        self._faults.at("move:finished")
        if recorded:
            log.info("dataset %s: its table is %s now (%s)", table.name, relocation.target, done.way)
        return done if recorded else None

    @contextmanager
    def _left_to_recovery(self, claim: Claim) -> Iterator[None]:
        """End the transaction of a move that was refused. After any other failure the catalog may have done it."""
        try:
            yield
        except MoveRefused as error:
            self._ledger.abort(claim.id, claim.fence, str(error))
            raise
        except BaseException:
            # Recovery looks, and need not wait for our lease.
            self._ledger.let_go(claim.id, claim.fence)
            raise


def _elsewhere(dataset: DatasetRecord, opened: OpenTransaction, relocation: Relocation) -> MoveRefused:
    return MoveRefused(
        f"the table of dataset {dataset.name} is {opened.identifier}, not {relocation.source}: it was moved meanwhile",
        safe="nothing was changed",
        next_step="lakeward move plan",
        dataset=dataset.name,
    )
