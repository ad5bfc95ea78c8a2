"""Recovery: what a process that died left behind is finished or removed. Anybody may do it, at any time, together.

An `open` transaction whose lease ran out (or whose owner is proved dead) is discarded and aborted; a `committed` one
whose publish is not recorded is published again.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from lakeward.clock import Faults
from lakeward.control.divergence import Divergence
from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion, Unfinished
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import Diverged, StorageError
from lakeward.storage.arm import StorageArm
from lakeward.storage.table import TableRef, table_ref

log = logging.getLogger("lakeward.recovery")


@dataclass(frozen=True)
class Recovered:
    """One thing that recovery did: `aborted`, `published`, or `diverged`."""

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
            record = self._tree.by_id(left.dataset_id)
            try:
                outcome = self._abort(record, left) if left.status == "open" else self._publish_again(record, left)
            except StorageError as error:
                log.warning("dataset %s: version %d can't be recovered now: %s", record.name, left.version, error)
                failed.append(error)
                continue
            if outcome is not None:
                done.append(Recovered(record.name, left.version, outcome))
                log.warning("recovered dataset %s: version %d %s", record.name, left.version, outcome)
        if failed:
            raise failed[0]
        return done

    def publish(
        self,
        dataset_id: int,
        transaction_id: int,
        arm: str,
        version: int,
        place: tuple[TableRef, ArmVersion] | None = None,
    ) -> None:
        """Publish a committed version and record it. Repeating it changes nothing.

        Args:
            dataset_id, transaction_id, arm, version: which one.
            place: where it is, if the caller has just decided it; None: the ledger is asked.

        Raises:
            Diverged: another engine moved the table; the dataset is marked, and reads stay at our version.
            CatalogError: the catalog did not answer; recovery publishes later.
        """
        table, held = place or self._place(dataset_id, arm, version)
        try:
            self._arms[arm].publish(table, held)
        except Diverged:
            self._divergence.mark(dataset_id, transaction_id)
            raise
        self._faults.at("publish:moved")
        self._ledger.mark_published(transaction_id)

    def _place(self, dataset_id: int, arm: str, version: int) -> tuple[TableRef, ArmVersion]:
        # As it is now: the decide of a first version has persisted where its table is.
        record = self._tree.by_id(dataset_id)
        held = self._ledger.arm_version(dataset_id, arm, version)
        assert held is not None, "decide records where the arm holds the version"
        return table_ref(record), held

    def _abort(self, record: DatasetRecord, left: Unfinished) -> str | None:
        try:
            self._arms[left.arm].discard(table_ref(record), left.version)
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
            self.publish(record.id, left.id, left.arm, left.version)
        except Diverged as error:
            log.error("%s", error)
            return "diverged"
        return "published"
