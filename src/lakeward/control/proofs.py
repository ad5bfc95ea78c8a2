"""Copies that a backfill has brought to an arm: they count for nobody until compared with the arm that serves.

Until then `arm_versions` names the backfill that brought them. They are held there like any other version, so that
nothing takes their rows for leftovers; but no reader is sent to them, no write goes on from them, and no engine is
shown them.
"""

from __future__ import annotations

from lakeward.control.db import Database, Queries
from lakeward.control.records import ArmVersion
from lakeward.errors import ConflictError

QUERIES = Queries.beside(__file__)


class Proofs:
    """What waits for its comparison in one workspace.

    Args:
        database: where the ledger is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def unproved(self, dataset_id: int, arm: str) -> ArmVersion | None:
        """Return the copy on an arm that waits for its comparison; None: there is none."""
        rows = self._database.fetch(QUERIES["unproved"], {"dataset_id": dataset_id, "arm": arm})
        return ArmVersion(**rows[0]) if rows else None

    def prove(self, dataset_id: int, arm: str, held: ArmVersion) -> bool:
        """Let a copy count that was compared; False if it is there no more.

        If it has to be published, that is recorded as still to be done: whoever comes does it. Not while its table is
        moved: no move begins before all is published, since what is committed to a name that goes is lost.

        Args:
            dataset_id: whose.
            arm: where.
            held: what `unproved` returned before it was compared.

        Raises:
            ConflictError: its table is being moved.
        """
        key = {"dataset_id": dataset_id, "arm": arm, "version": held.version, "unproved": held.unproved}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"], key)
            if held.snapshot_id is not None and connection.execute(QUERIES["moving"], key).first() is not None:
                raise ConflictError(
                    "the table of the copy that was compared is being moved",
                    safe="the copy is there as before, and counts for nobody",
                    next_step="repeat it; `lakeward move status` shows the move",
                )
            proved = connection.execute(QUERIES["prove"], key).one_or_none()
            if proved is not None and held.snapshot_id is not None:
                connection.execute(QUERIES["unpublish"], key)
        return proved is not None
