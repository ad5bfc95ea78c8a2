"""Copies that a backfill has brought and nobody has compared yet: what waits, and what makes it count.

Who compares is not told here: see `lakeward.migration.comparing`. Until a copy is proved, no reader is sent to it, it
is no mirror, it can't serve, and other engines are not shown it.
"""

from __future__ import annotations

import logging

from lakeward.control.ledger import Ledger
from lakeward.control.proofs import Proofs
from lakeward.control.records import ArmVersion
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ArmNotCurrent, ConflictError, DatabaseUnavailable, Diverged, StorageError
from lakeward.storage.recovery import Recovery
from lakeward.storage.table import table_ref

log = logging.getLogger("lakeward.replication")


class Proving:
    """The copies of one workspace that wait for their comparison.

    Args:
        ledger: says which they are.
        recovery: publishes what counts.
    """

    def __init__(self, ledger: Ledger, recovery: Recovery) -> None:
        self._proofs = Proofs(ledger.database)
        self._recovery = recovery

    def waiting(self, dataset: DatasetRecord, arm: str) -> ArmVersion | None:
        """Return the copy on an arm that was not compared yet; None: there is none."""
        return self._proofs.unproved(dataset.id, arm)

    def prove(self, dataset: DatasetRecord, arm: str, held: ArmVersion) -> None:
        """Let a copy count that was found to have the same rows as the arm that serves; other engines see it then.

        Args:
            dataset: which one, as it is now.
            arm: where the copy is.
            held: what `waiting` returned before it was compared.

        Raises:
            ConflictError: that copy is there no more, or its table is being moved.
        """
        assert held.unproved is not None, "it waits for its comparison"
        if not self._proofs.prove(dataset.id, arm, held):
            raise ConflictError(
                f"the copy of dataset {dataset.name} on the {arm} arm was removed while it was compared",
                safe="nothing was changed",
                next_step=f"lakeward flip status {dataset.name}",
                dataset=dataset.name,
                arm=arm,
            )
        if held.snapshot_id is None:
            return
        try:
            self._recovery.publish_places(dataset.id, held.unproved, {arm: (table_ref(dataset), held)})
        except (StorageError, Diverged, DatabaseUnavailable) as error:
            # It counts, and readers go through the ledger. Recovery publishes it before the next write.
            log.warning("the copy of dataset %s on the %s arm is not published yet: %s", dataset.name, arm, error)


def not_compared(dataset: str, arm: str) -> ArmNotCurrent:
    """Return the error of whoever wants to go on from a copy that was not compared yet."""
    return ArmNotCurrent(
        f"dataset {dataset}: the copy on the {arm} arm was not compared with the arm that serves yet",
        safe="nothing was changed, and nobody is served from the copy",
        next_step=f"lakeward flip verify {dataset}",
        dataset=dataset,
        arm=arm,
    )
