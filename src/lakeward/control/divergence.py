"""What the ledger knows of other engines' commits: datasets that diverged, and how each of them came back.

    ok ──another engine moved `main`──▶ diverged ──adopt──▶ ok      its rows are a new version (`Ledger.decide`)
     └──it only compacted──▶ ok                  ──restore─▶ ok      our last version is published once more

Every change of a dataset's status is made with its row locked, and only while what was found out still holds.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace

import sqlalchemy

from lakeward.control.audit import QUERIES as AUDIT
from lakeward.control.db import Database, Queries
from lakeward.control.deciding import QUERIES as DECIDING
from lakeward.control.deciding import lease_lost
from lakeward.control.identifiers import recorded
from lakeward.control.ledger import QUERIES as LEDGER
from lakeward.control.records import ArmVersion, OpenTransaction, Resolution
from lakeward.errors import ConflictError

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class Compaction:
    """A foreign snapshot with exactly the rows of ours, identity included.

    Args:
        snapshot_id: where `main` is.
        parent: our version that has the same rows.
        digest: of the business columns, high and low half.
    """

    snapshot_id: int
    parent: ArmVersion
    digest: tuple[int, int]


@dataclass(frozen=True)
class Maker:
    """The transaction that wrote a snapshot, to be published once more."""

    id: int
    version: int


class Divergence:
    """Changes of status, for one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def mark(self, dataset_id: int, transaction_id: int, fence: int | None = None) -> bool:
        """Record that another engine moved the dataset's table, so that nobody writes over it.

        Args:
            dataset_id: which dataset.
            transaction_id: the one that found it, while it prepared or published. If it was taken over, or is published
                by now, what it found may be resolved, and nothing is recorded.
            fence: its fence, if it found that before it was decided.

        Returns:
            Whether it is recorded.
        """
        with self._database.transaction() as connection:
            self._lock(connection, dataset_id)
            if connection.execute(QUERIES["unsettled"], {"id": transaction_id, "fence": fence}).one_or_none() is None:
                return False
            connection.execute(QUERIES["set_status"], {"dataset_id": dataset_id, "status": "diverged"})
        return True

    def compacted(self, transaction: OpenTransaction, compaction: Compaction, build_id: uuid.UUID) -> OpenTransaction:
        """Record a compaction as a version of its own, in front of the open transaction that found it.

        Where the arm does not hold the head, its rows are those of no version to come, and nothing is recorded.

        Returns:
            The open transaction, now one version later.

        Raises:
            LeaseLost: it is not ours any more.
        """
        if compaction.parent.version != transaction.parent_version:
            return transaction
        version, rows = transaction.version, transaction.parent_row_count
        key = {"dataset_id": transaction.dataset_id, "version": version, "parent_version": transaction.parent_version}
        digest = {"digest_high": compaction.digest[0], "digest_low": compaction.digest[1]}
        place = {**key, "arm": transaction.arm}
        with self._database.transaction() as connection:
            self._lock(connection, transaction.dataset_id)
            own = {"id": transaction.id, "fence": transaction.fence}
            if connection.execute(QUERIES["make_room"], own).one_or_none() is None:
                raise lease_lost(transaction)
            connection.execute(
                QUERIES["add_compaction"],
                {
                    **place,
                    **digest,
                    "build_id": build_id,
                    "route_epoch": transaction.route.epoch,
                    "row_count": rows,
                },
            )
            counters = {"next_row_id": transaction.next_row_id, "next_row_index": transaction.next_row_index}
            advanced = connection.execute(
                DECIDING["advance_head"], {**key, **digest, **counters, "row_count": rows, **recorded(None)}
            )
            if advanced.rowcount != 1:
                raise lease_lost(transaction)
            snapshots = {
                "snapshot_id": compaction.snapshot_id,
                "parent_snapshot_id": compaction.parent.snapshot_id,
            }
            connection.execute(DECIDING["record_arm_version"], {**place, **snapshots, "rebases": False})
            connection.execute(DECIDING["carry_arm_versions"], place)
        mirror = transaction.mirror
        if mirror is not None and mirror.newest is not None and mirror.newest.version == transaction.parent_version:
            # It holds the compaction's version, too, which was carried to it.
            mirror = replace(mirror, newest=replace(mirror.newest, version=version))
        moved = replace(transaction, version=version + 1, parent_version=version, parent_digest=compaction.digest)
        return replace(moved, mirror=mirror)

    def unpublished(self, dataset_id: int) -> bool:
        """Say whether a committed version of the dataset is yet to be published."""
        return bool(self._database.fetch(QUERIES["unpublished"], {"dataset_id": dataset_id}))

    def restore(
        self, dataset_id: int, dataset: str, arm: str, held: ArmVersion, found: int | None, resolution: Resolution
    ) -> Maker | None:
        """Decide that the arm goes back to our version, and end the divergence.

        Args:
            dataset_id: which dataset.
            dataset: its name.
            arm: the arm that another engine moved.
            held: the newest version that the arm holds.
            found: where its `main` is: publishing asserts that it is still there.
            resolution: for the audit log.

        Returns:
            What is to be published now; None if `main` is at our version, and only its columns were changed.

        Raises:
            ConflictError: somebody writes to the dataset.
        """
        with self._database.transaction() as connection:
            self._lock(connection, dataset_id)
            if connection.execute(QUERIES["open_one"], {"dataset_id": dataset_id}).one_or_none() is not None:
                raise ConflictError(
                    f"dataset {dataset} is being written",
                    safe="nothing was changed",
                    next_step="repeat when that is through; `lakeward status` shows it",
                    dataset=dataset,
                )
            maker = None
            if found != held.snapshot_id:
                place = {"dataset_id": dataset_id, "arm": arm}
                row = connection.execute(QUERIES["maker"], {**place, "snapshot_id": held.snapshot_id}).one()
                maker = Maker(row.id, row.version)
                connection.execute(QUERIES["start_from"], {**place, "version": maker.version, "found": found})
                connection.execute(QUERIES["unpublish"], {"id": maker.id})
            connection.execute(QUERIES["set_status"], {"dataset_id": dataset_id, "status": "ok"})
            self._log(connection, dataset, resolution)
        return maker

    def clear(self, dataset_id: int, dataset: str, resolution: Resolution) -> bool:
        """End a divergence that is gone: somebody set `main` back. False if there was none."""
        with self._database.transaction() as connection:
            if self._lock(connection, dataset_id)["status"] == "ok":
                return False
            connection.execute(QUERIES["set_status"], {"dataset_id": dataset_id, "status": "ok"})
            self._log(connection, dataset, resolution)
        return True

    @staticmethod
    def _lock(connection: sqlalchemy.Connection, dataset_id: int) -> sqlalchemy.RowMapping:
        return connection.execute(LEDGER["lock_dataset"], {"dataset_id": dataset_id}).mappings().one()

    @staticmethod
    def _log(connection: sqlalchemy.Connection, dataset: str, resolution: Resolution) -> None:
        connection.execute(AUDIT["line"], resolution.audit_entry(dataset, resolution.ours))
