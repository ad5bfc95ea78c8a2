"""Recovery: what a process that died left behind is finished or removed. Anybody may do it, at any time, together.

An `open` transaction whose lease ran out (or whose owner is proved dead) is discarded and aborted, but for a move,
which is finished; a `committed` one whose publish is not recorded is published again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeward.clock import Faults
from lakeward.control.divergence import Divergence
from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion, OpenTransaction, Unfinished
from lakeward.control.transaction_kinds import VERSIONLESS_KINDS
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import Diverged, StorageError
from lakeward.storage.arm import StorageArm
from lakeward.storage.moving import Finishing
from lakeward.storage.table import TableRef, table_ref

log = logging.getLogger("lakeward.recovery")


@dataclass(frozen=True)
class Recovered:
    """One thing that recovery did: `aborted`, `published`, `moved`, or `diverged`."""

    dataset: str
    version: int
    outcome: str


class Recovery:
    """Finishes and removes what dead processes left, for one workspace."""

    def __init__(self, tree: Tree, ledger: Ledger, arms: Mapping[str, StorageArm], faults: Faults) -> None:
        self._tree = tree
        self._ledger = ledger
        self._divergence = Divergence(ledger.database)
        self._arms = arms
        self._moving = Finishing(ledger, arms, faults)
        self._faults = faults

    def recover(self, dataset_id: int | None = None) -> list[Recovered]:
        """Recover one dataset, or all of them; repeating it does nothing more.

        What can't be recovered now does not keep the others from it; it is told at the end.

        Raises:
            StorageError: an arm did not answer, the first one's error; nothing is lost, and the next recovery goes on.
        """
        done: list[Recovered] = []
        failed: list[StorageError] = []
        for left in self._ledger.unfinished(dataset_id):
            record = self._tree.by_id(left.dataset_id, dropped=True)
            try:
                outcome = self._abort(record, left) if left.status == "open" else self._publish_again(record, left)
            except StorageError as error:
                log.warning("dataset %s: version %d can't be recovered now: %s", record.name, left.version, error)
                failed.append(error)
                continue
            if outcome is not None:
                done.append(Recovered(record.name, left.version, outcome))
                # One that is only to be published may be a living writer's, who does it at this moment, too.
                level = logging.INFO if outcome == "published" else logging.WARNING
                log.log(level, "recovered dataset %s: version %d %s", record.name, left.version, outcome)
        if failed:
            raise failed[0]
        return done

    def discard(self, table: TableRef, transaction: OpenTransaction | Unfinished, arms: Sequence[str]) -> None:
        """Remove what an open transaction has prepared on the arms that it wrote to. Repeating it changes nothing.

        Args:
            table: the dataset.
            transaction: the open one.
            arms: its own arm, then its mirror: that one's failing to answer keeps no later write from being done.
        """
        if transaction.kind in ("route", "move"):
            return
        for name in arms:
            if transaction.kind not in VERSIONLESS_KINDS:
                self._discard_write(table, transaction.version, name, mirrors=name != arms[0])
                continue
            # Its version is not its own: another transaction may bring the same one there, or has done so.
            newest = self._ledger.newest_arm_version(table.dataset_id, name)
            self._arms[name].discard_after(table, newest.version if newest is not None else 0, transaction)

    def _discard_write(self, table: TableRef, version: int, name: str, *, mirrors: bool) -> None:
        arm = self._arms[name]
        try:
            arm.discard(table, version)
        except StorageError as error:
            if not (mirrors and arm.leftovers_hide):
                raise
            log.warning("dataset %s: what the %s arm has of %d stays for now: %s", table.name, name, version, error)

    def publish(self, dataset_id: int, transaction_id: int, arms: Sequence[str], version: int) -> None:
        """Publish a committed version on the arms that hold it, and record that. Repeating it changes nothing.

        Args:
            dataset_id, transaction_id, version: which one.
            arms: those that may hold it.

        Raises:
            Diverged: another engine moved the table; the dataset is marked, and reads stay at our version.
            CatalogError: the catalog did not answer; recovery publishes later.
        """
        # As it is now: the decide of a first version has persisted where its table is.
        table = table_ref(self._tree.by_id(dataset_id, dropped=True))
        held = {arm: self._ledger.arm_version(dataset_id, arm, version) for arm in arms}
        places = {arm: (table, place) for arm, place in held.items() if place is not None}
        assert places, "decide records where the arm holds the version"
        self.publish_places(dataset_id, transaction_id, places)

    def publish_places(
        self, dataset_id: int, transaction_id: int, places: Mapping[str, tuple[TableRef, ArmVersion]]
    ) -> None:
        """Do what `publish` does, for the caller who has just decided where the version is."""
        for arm, (table, held) in places.items():
            try:
                self._arms[arm].publish(table, held)
            except Diverged:
                if arm == self._tree.by_id(dataset_id, dropped=True).route.primary_arm:
                    self._divergence.mark(dataset_id, transaction_id)
                else:
                    # A mirror, or a copy: it falls behind until its table is restored, and no writer waits for that.
                    self._ledger.mark_published(transaction_id)
                raise
        self._faults.at("publish:moved")
        self._ledger.mark_published(transaction_id)

    def _abort(self, record: DatasetRecord, left: Unfinished) -> str | None:
        if left.kind == "move":
            return self._moving.resume(table_ref(record), left)
        try:
            self.discard(table_ref(record), left, left.arms)
        except StorageError:
            # Taking over gave us a lease of our own, which the next recovery need not wait for.
            self._ledger.let_go(left.id, left.fence)
            raise
        self._faults.at("recover:discarded")
        ended = self._ledger.abort(left.id, left.fence, "its owner stopped without deciding")
        return "aborted" if ended else None

    def _publish_again(self, record: DatasetRecord, left: Unfinished) -> str | None:
        if record.status == "diverged":
            # Until somebody resolves it, looking again finds the same, and may have to read two snapshots for that.
            return None
        try:
            self.publish(record.id, left.id, left.arms, left.version)
        except Diverged as error:
            log.error("%s", error)
            return "diverged"
        return "published"
