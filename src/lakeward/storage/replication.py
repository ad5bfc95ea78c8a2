"""Keeps a dataset on two arms, and changes which of them serves it. Nothing of it makes a version or changes a row.

    backfill    brings the head, as it is when it begins, to an arm; writers go on meanwhile
    proving     lets that copy count, once it was compared: see `proving`
    catch up    brings what an arm has missed since, holding the dataset's slot
    reroute     changes mode, primary and mirror in one row, between two writes

Each is a transaction of the ledger, so that a process that dies in it leaves what any other write leaves.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from lakeward.clock import Ids
from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion, Counts, Decision, Intent, Mirrored, OpenTransaction
from lakeward.control.retention import Retention
from lakeward.control.routes import ARMS_OF, Route
from lakeward.control.slots import Slots
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ArmNotCurrent, UsageError
from lakeward.storage.arm import NEW, OLD, WriteTask, scanned
from lakeward.storage.duck import Duck
from lakeward.storage.leftovers import TidyTask
from lakeward.storage.mirroring import Mirroring, Watched
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.proving import Proving, not_compared
from lakeward.storage.recovery import Recovery
from lakeward.storage.requests import Brought, Output, WriteResult
from lakeward.storage.routing import Routing
from lakeward.storage.sides import Side
from lakeward.storage.table import table_ref

log = logging.getLogger("lakeward.replication")


@dataclass(frozen=True)
class Lag:
    """How far an arm is behind the head.

    Args:
        dataset: whose.
        arm: which one.
        holds: the newest version that it holds; None: it holds none.
        head: the dataset's newest version.
        versions: how many committed versions it has missed.
        rows: how many rows those wrote or removed.
        error: why the last write did not get there; None: nothing is known to be wrong.
        waits: a version that was copied there and has not been compared yet; until then the arm does not hold it.
    """

    dataset: str
    arm: str
    holds: int | None
    head: int
    versions: int
    rows: int
    error: str | None = None
    waits: int | None = None

    @property
    def current(self) -> bool:
        """Whether it holds the head."""
        return (self.holds or 0) == self.head

    @property
    def has_rows(self) -> bool:
        """Whether the arm holds a version, or has a copy of one that is still to be compared."""
        return self.holds is not None or self.waits is not None

    @property
    def missed(self) -> str:
        """What it has missed, in words: `2 versions, 9 rows`."""
        return ", ".join(
            f"{number:,} {thing}{'' if number == 1 else 's'}"
            for number, thing in ((self.versions, "version"), (self.rows, "row"))
        )

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


class Replication:
    """Brings versions to other arms and changes routes.

    Args:
        tree: names and what they stand for.
        ledger: holds versions and routes.
        slots: hands out the slot for a change of the route.
        routing: finds arms.
        protocol: runs the transactions.
        recovery: tidies up before one.
        retention: ends the versions of an arm.
        duck: compares.
        ids: makes build ids.
    """

    def __init__(
        self,
        tree: Tree,
        ledger: Ledger,
        slots: Slots,
        routing: Routing,
        protocol: WriteProtocol,
        recovery: Recovery,
        retention: Retention,
        duck: Duck,
        ids: Ids,
    ) -> None:
        self._tree = tree
        self._ledger = ledger
        self._slots = slots
        self._routing = routing
        self._protocol = protocol
        self._recovery = recovery
        self._retention = retention
        self._mirroring = Mirroring(routing.arms, duck)
        self.proving = Proving(ledger, recovery)
        self._ids = ids

    def backfill(
        self,
        dataset: DatasetRecord,
        to: str,
        *,
        writer: str = "flip.backfill",
        watched: Watched = lambda rows: rows,
    ) -> WriteResult:
        """Bring the head to an arm, all rows with their identity. Until it is proved, the copy counts for nobody.

        Writers go on meanwhile; the copy is of the version that was the head when this began. If the arm holds the head
        already, or a copy that waits for its comparison, nothing happens; if it holds an older version, what it has
        missed is brought, and compared.

        Args:
            dataset: which one.
            to: the arm.
            writer: the named place in the product that asks for it.
            watched: is given the stream of the rows, and returns it: to count them, or to slow it down.

        Raises:
            LeaseLost: another process took over.
            LockTimeout: another backfill of the dataset is under way.
        """

        def bring(task: WriteTask) -> Brought:
            if task.parent is not None:
                return self.missed(task, to)
            source, held = self._source(task.table.dataset_id, task.transaction)
            prepared, place = self._mirroring.copied(task, self._routing.arm(source), held, watched)
            place = replace(place, unproved=task.transaction.id)
            return Brought(prepared, Mirrored(to, place, 0, prepared.identifier))

        waits = self.lag(dataset, to).waits
        if waits is not None:
            return WriteResult.nothing(dataset.name, "copy", waits, dataset.row_count)
        return self._bring(dataset, to, "backfill", "copy", writer, bring)

    def catch_up(self, dataset: DatasetRecord, arm: str, *, writer: str = "mirror.catch_up") -> WriteResult:
        """Bring to an arm what it has missed, at the cost of that, and compare. Writers wait meanwhile.

        If it holds the head already, nothing happens. An arm that never held the dataset gets all of it.

        Args:
            dataset: which one.
            arm: which arm.
            writer: the named place in the product that asks for it.

        Raises:
            ArmNotCurrent: the arm has a copy that was not compared yet.
            ParityMismatch: the arm would hold other rows; nothing of it counts.
            StorageError: the arm has not the rows that it should have had before.
        """
        return self._bring(dataset, arm, "mirror", "replay", writer, lambda task: self.missed(task, arm))

    def _bring(
        self,
        dataset: DatasetRecord,
        arm: str,
        kind: str,
        verb: str,
        writer: str,
        bring: Callable[[WriteTask], Brought],
    ) -> WriteResult:
        """Run a transaction that brings the head to an arm, unless the arm holds it."""
        self._routing.arm(arm)
        dataset = self._tree.by_id(dataset.id)
        lag = self.lag(dataset, arm)
        if lag.current:
            return WriteResult.nothing(dataset.name, verb, dataset.head_version, dataset.row_count)
        if not lag.has_rows and self.has_remains(dataset, arm):
            self.drain(dataset, arm)
        output = Output(dataset, verb, bring=bring)
        return self._protocol.run([output], writer=writer, kind=kind, arm=arm).transactions[0]

    def missed(self, task: WriteTask, arm: str) -> Brought:
        """Bring to an arm what it has missed of the head that its transaction began at; all rows if it holds none."""
        source, held = self._source(task.table.dataset_id, task.transaction)
        # If all rows were put in place anew, some may be older than what the arm holds, as in an adopted snapshot.
        if task.parent is None or held.base_version > task.parent.version:
            done = self._mirroring.whole(task, self._routing.arm(source), held)
        else:
            done = self._mirroring.replayed(task, self._sides(task, arm, source, held, task.parent))
        rows = self._mirroring.compare(arm, done, task.parent)
        return Brought(done.prepared, Mirrored(arm, done.place, rows, done.prepared.identifier))

    def reroute(
        self,
        dataset: DatasetRecord,
        mode: str,
        *,
        writer: str = "flip.switch",
        checked: Callable[[OpenTransaction], None] = lambda _: None,
    ) -> Route:
        """Change the route, between two writes: one that is under way is waited for, others wait for this.

        The catalog is not asked, if the arm that is to serve the dataset is not in it.

        Args:
            dataset: which one.
            mode: the new one.
            writer: the named place in the product that asks for it.
            checked: is called once no write is under way, and raises to leave the route as it is.

        Raises:
            ArmNotCurrent: the arm that would serve the dataset does not hold its head.
            LockTimeout: a writer did not end in time.
        """
        primary, mirror = ARMS_OF[mode]
        intent = Intent(
            dataset_id=dataset.id,
            dataset=dataset.name,
            kind="route",
            verb=mode,
            build_id=self._ids.new(),
            writer=writer,
            past_mirror=True,
            serves=primary,
        )
        opened = self._slots.take(intent, lambda: self._recovery.recover(dataset.id))
        try:
            if opened.parent_version and self._ledger.arm_version(dataset.id, primary) is None:
                raise self._not_current(dataset, primary, opened.parent_version)
            if mirror is not None and self.proving.waiting(dataset, mirror) is not None:
                raise not_compared(dataset.name, mirror)
            checked(opened)
            route = Route(mode, primary, mirror, opened.route.epoch + 1)
            self._ledger.decide([_decision(opened, route)])
        except BaseException as error:
            # If it was decided after all, this finds nothing to end.
            self._ledger.abort(opened.id, opened.fence, f"{type(error).__name__}: {error}")
            raise
        return route

    def lag(self, dataset: DatasetRecord, arm: str) -> Lag:
        """Return how far an arm is behind. Asks the ledger; no row is read or counted."""
        return Lag(dataset=dataset.name, **self._ledger.lag(dataset.id, arm))

    def freshness(self, dataset: DatasetRecord) -> dict[str, int | None]:
        """Return the newest committed version that each arm holds and serves; None where it holds none.

        This is the one answer to "has this dataset a version on that arm, and which". It is read from the ledger; no
        row is looked at or counted. An arm that is being emptied holds none.

        Args:
            dataset: which one; the record may be of an earlier moment.
        """
        held = self._ledger.freshness(dataset.id)
        return {arm: held.get(arm) for arm in self._routing.arms}

    def has_remains(self, dataset: DatasetRecord, arm: str) -> bool:
        """Say whether an arm has anything of a dataset, be it what a drain that was cut short has left."""
        return self._ledger.newest_arm_version(dataset.id, arm) is not None

    def only_on(self, dataset: DatasetRecord, arm: str) -> dict[int, str | None]:
        """Return the versions that nobody could read if an arm were emptied, and who keeps each, if anybody does."""
        return self._retention.only_on(dataset.id, arm)

    def drain(self, dataset: DatasetRecord, arm: str) -> int:
        """Remove all that an arm has of a dataset, in chunks, and return how many things that were.

        First no reader is sent there any more. Cut short, it is repeated and goes on.

        Args:
            dataset: which one.
            arm: neither the one that serves nor the mirror.

        Raises:
            UsageError: the arm has a part to play, or somebody keeps a version that only it holds.
        """
        dataset = self._tree.by_id(dataset.id)
        kept = {version: by for version, by in self.only_on(dataset, arm).items() if by is not None}
        if kept:
            raise UsageError(
                f"dataset {dataset.name}: {', '.join(f'version {each} is kept by {by}' for each, by in kept.items())}, "
                f"and only the {arm} arm has it",
                safe="nothing was removed",
                next_step="let it go: Dataset.let_go",
                dataset=dataset.name,
                versions=list(kept),
            )
        self._recovery.recover(dataset.id)
        held = self._retention.end_arm(dataset.id, arm)
        if any(each.expired_seconds is None for each in held):
            raise UsageError(
                f"the {arm} arm of dataset {dataset.name} serves it, mirrors it, or is written to",
                safe="nothing was removed",
                next_step=f"lakeward flip status {dataset.name}",
                dataset=dataset.name,
                arm=arm,
            )
        task = TidyTask(
            table=table_ref(dataset),
            held=[replace(each, expired_seconds=math.inf) for each in held],
            head_version=dataset.head_version,
            diverged=False,
            grace_seconds=0.0,
            open_seconds=None,
            dry_run=False,
        )
        removed = sum(leftover.count for leftover in self._routing.arm(arm).drain(task))
        self._retention.forget(dataset.id, arm, [each.version for each in held])
        return removed

    def _source(self, dataset_id: int, transaction: OpenTransaction) -> tuple[str, ArmVersion]:
        """Return the arm that has the head which the transaction began at, the one that serves first, and how."""
        for name in dict.fromkeys([transaction.route.primary_arm, *self._routing.arms]):
            held = (
                self._ledger.arm_version(dataset_id, name, transaction.parent_version)
                if name != transaction.arm
                else None
            )
            if held is not None:
                return name, held
        raise ArmNotCurrent(
            f"no arm but the {transaction.arm} one holds version {transaction.parent_version} of dataset "
            f"{transaction.dataset}",
            dataset=transaction.dataset,
            version=transaction.parent_version,
        )

    def _sides(self, task: WriteTask, arm: str, source: str, held: ArmVersion, newest: ArmVersion) -> tuple[Side, Side]:
        """Return rows of the version that an arm holds and of that which it is to get; from one arm if it has both."""
        table, serving = task.table, self._routing.arm(source)
        older = self._ledger.arm_version(table.dataset_id, source, newest.version)
        if older is not None:
            return serving.changes(table, older, held)
        log.warning("dataset %s: version %d has expired; the arms are compared in full", table.name, newest.version)
        return scanned(self._routing.arm(arm), table, newest, OLD), scanned(serving, table, held, NEW)

    def _not_current(self, dataset: DatasetRecord, arm: str, version: int) -> ArmNotCurrent:
        newest = self._ledger.newest_arm_version(dataset.id, arm)
        holds = f"holds version {newest.version}" if newest is not None else "holds none of its versions"
        return ArmNotCurrent(
            f"dataset {dataset.name} can't be served by the {arm} arm, which {holds}; its head is {version}",
            safe="the route is as it was",
            next_step=f"lakeward flip start {dataset.name} --to {arm}",
            dataset=dataset.name,
            arm=arm,
            version=version,
        )


def _decision(opened: OpenTransaction, route: Route) -> Decision:
    return Decision(
        opened,
        Counts.same(opened.parent_row_count),
        next_row_id=opened.next_row_id,
        next_row_index=opened.next_row_index,
        rebases=False,
        publishes=False,
        digest=opened.parent_digest,
        route=route,
    )
