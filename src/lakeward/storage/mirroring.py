"""Brings what one arm holds to another, exactly: rows with their identity, compared on the other side before it counts.

A write is replayed on the mirror within its own transaction, from what it has just prepared; so both arms hold the same
version, and one decide commits both. What a mirror has missed is replayed later, all at once, by a transaction that
makes no version. Either way it costs what changed, and the comparison does, too: rows that go are counted, and rows
that come are read back from the mirror and hashed. So if the arms were equal before, they are now.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa

from lakeward.control.records import ArmVersion, Mirrored, OpenTransaction
from lakeward.errors import ParityMismatch
from lakeward.storage.arm import Prepared, Scan, StorageArm, WriteTask
from lakeward.storage.difference import SideDifference
from lakeward.storage.duck import Duck
from lakeward.storage.running_digest import RunningDigest
from lakeward.storage.sides import Side
from lakeward.storage.table import TableRef
from lakeward.types.digest import Digest, digest_batches

Watched = Callable[[pa.RecordBatchReader], pa.RecordBatchReader]


@dataclass(frozen=True)
class Replayed:
    """What an arm prepared of another arm's version, and the digest of the rows that it was given."""

    prepared: Prepared
    table: TableRef
    place: ArmVersion
    given: Digest


class Mirroring:
    """Replays versions from arm to arm.

    Args:
        arms: by name.
        duck: compares and hashes.
    """

    def __init__(self, arms: Mapping[str, StorageArm], duck: Duck) -> None:
        self._arms = arms
        self._duck = duck

    def along(
        self,
        transaction: OpenTransaction,
        written: tuple[TableRef, ArmVersion],
        check: Callable[[], None],
        *,
        whole: bool,
    ) -> Mirrored:
        """Prepare on the mirror what a write has prepared, and compare.

        Args:
            transaction: the write, whose mirror holds the parent version.
            written: where the write is prepared.
            check: raises if the lease is lost.
            whole: the write put every row in place anew.

        Raises:
            ParityMismatch: the mirror has other rows now than it was given.
            LakewardError: the mirror could not be written.
        """
        mirror = transaction.mirror
        assert mirror is not None, "the route names it"
        table, held = written
        task = other_arm_task(transaction, mirror.arm, mirror.newest, table, check)
        source = self._arms[transaction.arm]
        if whole or mirror.newest is None or transaction.arm_parent is None:
            done = self.whole(task, source, held)
        else:
            done = self.replayed(task, source.changes(table, transaction.arm_parent, held))
        rows = self.compare(mirror.arm, done, mirror.newest)
        return Mirrored(mirror.arm, done.place, rows, done.prepared.identifier)

    def copied(
        self, task: WriteTask, source: StorageArm, held: ArmVersion, watched: Watched = lambda rows: rows
    ) -> tuple[Prepared, ArmVersion]:
        """Bring all rows of a version, and return what was prepared, and where that is. Nothing is compared.

        Args:
            task: the write to the other arm.
            source: the arm that holds the version.
            held: how.
            watched: is given the stream of the rows, and returns it.
        """
        rows = source.scan(task.table, held, Scan(task.table.schema.names, identity=True))
        prepared = self._arms[task.transaction.arm].prepare(task, watched(rows))
        assert isinstance(prepared, Prepared), "a copy is always written"
        return prepared, _place(task, prepared)

    def whole(self, task: WriteTask, source: StorageArm, held: ArmVersion) -> Replayed:
        """Bring all rows of a version, and hash them on the way; for the arguments see `copied`."""
        running = RunningDigest(self._duck, task.table.schema)
        prepared, _ = self.copied(task, source, held, partial(running.over, ahead=True))
        return self._replayed(task, prepared, running)

    def replayed(self, task: WriteTask, sides: tuple[Side, Side]) -> Replayed:
        """Bring what differs.

        Args:
            task: the write to the other arm, which holds the older version.
            sides: rows of the older and the newer version.
        """
        running = RunningDigest(self._duck, task.table.schema)
        with SideDifference(self._duck, task.table, sides, running.over) as difference:
            prepared = self._arms[task.transaction.arm].replay(task, difference)
        return self._replayed(task, prepared, running)

    def compare(self, arm: str, done: Replayed, newest: ArmVersion | None) -> int:
        """Read back what an arm was given, and return how many rows that are.

        Args:
            arm: which one.
            done: what it prepared.
            newest: what it held before: of that only what came since is read.

        Raises:
            ParityMismatch: they are other rows.
        """
        since = newest.version if newest is not None and not done.prepared.rebases else None
        if since is None:
            found = self._arms[arm].digest(done.table, done.place)
        else:
            rows = self._arms[arm].scan(done.table, done.place, Scan(done.table.schema.names, since=since))
            with self._duck.session() as connection:
                found = digest_batches(done.table.schema, rows, connection=connection)
        if found != done.given:
            raise ParityMismatch(
                f"dataset {done.table.name}, version {done.place.version}: the {arm} arm has other rows than it was "
                f"given: {found}, given {done.given}",
                safe="the version does not count on that arm",
                next_step=f"`lakeward verify {done.table.name}` compares the arms",
                dataset=done.table.name,
                version=done.place.version,
                arm=arm,
            )
        return found.count

    @staticmethod
    def _replayed(task: WriteTask, prepared: Prepared, running: RunningDigest) -> Replayed:
        table = replace(task.table, identifier=prepared.identifier or task.table.identifier)
        return Replayed(prepared, table, _place(task, prepared), running.digest)


def _place(task: WriteTask, prepared: Prepared) -> ArmVersion:
    version = task.transaction.version
    base = version if prepared.rebases or task.parent is None else task.parent.base_version
    return ArmVersion(version, base, prepared.snapshot_id, prepared.parent_snapshot_id)


def other_arm_task(
    transaction: OpenTransaction,
    arm: str,
    newest: ArmVersion | None,
    table: TableRef,
    check: Callable[[], None],
) -> WriteTask:
    """Return the task of bringing a transaction's version to another arm than the one that serves the dataset.

    Args:
        transaction: whose version it is.
        arm: where to.
        newest: what that arm holds.
        table: the dataset.
        check: raises if the lease is lost.
    """
    there = replace(transaction, arm=arm, arm_parent=newest, verb="copy")
    # Another engine that compacted the mirror's table changed no row, and nothing has to be recorded of it.
    return WriteTask(table, there, newest, check, lambda _: there)
