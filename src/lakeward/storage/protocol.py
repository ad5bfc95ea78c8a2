"""The write protocol: prepare, decide, publish. Here it is settled when written data becomes visible: in `decide`.

    intent    a short Postgres transaction takes the dataset's open slot and a version
    compute   the stream of rows is opened; nothing is written yet
    prepare   the arm makes the rows durable, invisible to everybody else
    audit     the prepared version is read like any other, and may be refused
    decide    one Postgres transaction commits every output of the build, or none
    publish   the arm's own head follows; redone by recovery if it fails

A failure before decide aborts: what was prepared was never visible and is removed. From decide on the build stands.
"""

from __future__ import annotations

import itertools
import logging
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from lakeward import stopping
from lakeward.clock import Clock, Faults, Ids
from lakeward.control.deciding import lease_lost
from lakeward.control.divergence import Compaction, Divergence
from lakeward.control.idempotency import IdempotencyKeys
from lakeward.control.leases import Heartbeat
from lakeward.control.ledger import Ledger
from lakeward.control.metrics import Metrics
from lakeward.control.records import NOTHING_TO_WRITE, OpenTransaction
from lakeward.control.slots import Slots
from lakeward.control.tree import Tree
from lakeward.errors import (
    ConflictError,
    ControlError,
    DatabaseUnavailable,
    Diverged,
    EmptyReplace,
    LakewardError,
    LeaseLost,
    StorageError,
    UsageError,
)
from lakeward.happenings import told
from lakeward.storage.arm import Delta, NothingToWrite, StorageArm, WriteTask
from lakeward.storage.duck import Duck
from lakeward.storage.identifying import identify_first
from lakeward.storage.job import (
    Job,
    Purpose,
    about_intent,
    about_job,
    about_write,
    checking,
    clears,
    decision_of,
    digest_of,
    idle_of,
    intent_of,
    place_of,
    result_of,
    still,
    unless_empty,
)
from lakeward.storage.mirror_step import MirrorStep
from lakeward.storage.mirroring import Mirroring, other_arm_task
from lakeward.storage.outcome import outcome_of
from lakeward.storage.proving import not_compared
from lakeward.storage.recovery import Recovery
from lakeward.storage.repeats import Repeats
from lakeward.storage.requests import Brought, BuildResult, Output, PreparedVersion
from lakeward.storage.running_digest import RunningDigest
from lakeward.storage.side_by_side import SideBySide
from lakeward.storage.table import table_ref
from lakeward.storage.verbs import VERBS
from lakeward.types.digest import EMPTY

log = logging.getLogger("lakeward.protocol")

STEPS = ("intent", "compute", "prepare", "audit", "decide", "publish")
"""The steps in order. `Faults.at` is called with `<step>` before each, and with `<step>:<point>` inside some."""

POINTS = (
    "intent",
    "intent:opened",
    "compute",
    "prepare",
    "prepare:copy",
    "prepare:chunk",
    "prepare:files",
    "prepare:deletes",
    "prepare:committed",
    "audit",
    "decide",
    "decide:committed",
    "publish",
    "publish:moved",
)
"""Every name that `Faults.at` is called with during a write, in order. The arms name those inside prepare: copy (within
a Postgres transaction) and chunk are of the Postgres arm, files, the delete files of a keyed write, and their commit of
the Iceberg arm."""

COMMITTED_FROM = "decide:committed"
"""From this point on a write stands, whatever happens; before it, nothing of it is ever seen."""


class WriteProtocol:
    """Runs builds against the ledger and the arms."""

    def __init__(
        self,
        tree: Tree,
        ledger: Ledger,
        slots: Slots,
        arms: Mapping[str, StorageArm],
        recovery: Recovery,
        *,
        duck: Duck,
        clock: Clock,
        ids: Ids,
        faults: Faults,
        metrics: Metrics | None = None,
    ) -> None:
        self._duck = duck
        self._metrics = metrics or Metrics()
        self._mirror_step = MirrorStep(arms, Mirroring(arms, duck), faults, self._metrics)
        self._tree = tree
        self._ledger = ledger
        self._slots = slots
        self._arms = arms
        self._divergence = Divergence(ledger.database)
        self._recovery = recovery
        self._clock = clock
        self._ids = ids
        self._faults = faults
        self._repeats = Repeats(IdempotencyKeys(ledger.database), duck)

    def run(
        self,
        outputs: Sequence[Output],
        *,
        writer: str,
        pipeline: str | None = None,
        kind: str = "write",
        arm: str | None = None,
        width: int = 1,
        build_id: uuid.UUID | None = None,
    ) -> BuildResult:
        """Write all outputs, visible together or not at all.

        Args:
            outputs: what to write, at most one of each dataset.
            writer: the named place in the product that writes.
            pipeline: the pipeline that is built, if any.
            kind: `write`, `copy` to the other arm, `compact`, or `adopt` of another engine's snapshot.
            arm: the arm to write to; None: each dataset's primary.
            width: how many outputs are prepared at a time; none of them may read what another one writes.
            build_id: by which the build is to be known, one that was never used; None: any.
        """
        ordered = sorted(outputs, key=lambda output: output.dataset.id)
        for one, next_one in itertools.pairwise(ordered):
            if one.dataset.id == next_one.dataset.id:
                raise UsageError(f"dataset {one.dataset.name} is written twice by one build", dataset=one.dataset.name)
        self._repeats.check(ordered)
        # Before anything else: what is there already waits for nobody.
        repeated = self._repeats.of(ordered, writer, pipeline)
        if repeated is not None:
            return repeated
        identify_first(self._tree, self.run, ordered, writer)
        return self._run(ordered, Purpose(build_id or self._ids.new(), writer, pipeline, kind, arm), width)

    @told("write", about_write)
    def _run(self, ordered: Sequence[Output], purpose: Purpose, width: int) -> BuildResult:
        jobs: list[Job] = []
        held: list[OpenTransaction] = []
        with self._ledger.heartbeat(held) as heartbeat:
            try:
                # Sorted, so that two builds that share datasets can't wait for each other in a circle.
                for output in ordered:
                    transaction = self._intent(output, purpose)
                    held.append(transaction)
                    # Before anything else can fail: what is open and not among the jobs would stay so until its lease
                    # ends. The caller may have looked before the table's place was known; the intent knows it.
                    table = replace(table_ref(output.dataset), identifier=transaction.identifier)
                    jobs.append(Job(output, transaction, table))
                    self._faults.at("intent:opened")
                # Once more, now that nobody else can write: of two with one key at once, one has written by now.
                repeated = self._repeats.of(ordered, purpose.writer, purpose.pipeline)
                if repeated is None:
                    self._steps(jobs, heartbeat, width)
            except BaseException as error:
                if isinstance(error, ConflictError):
                    self._metrics.add("lakeward_writes_refused_total", error=type(error).__name__)
                for job in jobs:
                    self._abort(job, f"{type(error).__name__}: {error}")
                raise
        for job in jobs:
            if job.prepared is None:
                self._abort(job, NOTHING_TO_WRITE)
            elif job.publishes:
                self._publish(job)
        return repeated or BuildResult(purpose.build_id, purpose.pipeline, tuple(result_of(job) for job in jobs))

    def _steps(self, jobs: Sequence[Job], heartbeat: Heartbeat, width: int) -> None:
        """Compute, prepare, audit and decide what is open."""
        for job in jobs:
            if job.output.opened is not None:
                job.output.opened(job.transaction)
        together: SideBySide[Job] = SideBySide(width)
        together.run(jobs, lambda job: self._make(job, checking(job, heartbeat, together)))
        for job in jobs:
            self._audit(job)
        for job in jobs:
            self._mirror(job, heartbeat, checking(job, heartbeat, together))
        stopping.check()
        self._decide(jobs)

    @told("write.intent", about_intent)
    def _intent(self, output: Output, purpose: Purpose) -> OpenTransaction:
        self._faults.at("intent")
        # Leftovers of an earlier version must be gone before there is a later one: until they are, that one is open.
        intent = intent_of(output, purpose)
        return self._slots.take(intent, lambda: self._recovery.recover(output.dataset.id))

    def _make(self, job: Job, check: Callable[[], None]) -> None:
        self._compute(job)
        self._prepare(job, check)
        if job.prepared is None:
            job.prepared = still(job)

    @told("write.compute", about_job)
    def _compute(self, job: Job) -> None:
        if job.output.bring is not None:
            return
        self._faults.at("compute")
        rows, job.asked = self._repeats.over(job.output, job.output.rows())
        job.batches = unless_empty(rows)
        if job.batches.empty and clears(job.transaction.verb) and not job.output.allow_empty:
            raise EmptyReplace(
                f"dataset {job.transaction.dataset}: {job.transaction.verb} by zero rows would empty it",
                safe=f"the dataset is unchanged at version {job.transaction.parent_version}",
                next_step="pass allow_empty=True (--allow-empty) if that is meant",
                dataset=job.transaction.dataset,
            )

    @told("write.prepare", about_job)
    def _prepare(self, job: Job, check: Callable[[], None]) -> None:
        held = job.transaction.arm_parent
        if held is not None and held.unproved is not None:
            raise not_compared(job.transaction.dataset, job.transaction.arm)
        if job.output.bring is not None:
            self._bring(job, job.output.bring, check)
            return
        assert job.batches is not None
        if job.batches.empty and job.transaction.verb in VERBS and not clears(job.transaction.verb):
            return
        self._faults.at("prepare")
        transaction = job.transaction

        def compacted(compaction: Compaction) -> OpenTransaction:
            job.transaction = self._divergence.compacted(job.transaction, compaction, self._ids.new())
            return job.transaction

        adopts = job.output.resolution.found if job.output.resolution is not None else None
        policy = job.output.policy
        task = WriteTask(job.table, transaction, transaction.arm_parent, check, compacted, adopts, policy)
        batches, running = job.batches.reader, None
        if transaction.verb == "append" and transaction.parent_digest is not None:
            running = job.asked
            if running is None:
                running = RunningDigest(self._duck, job.table.schema)
                batches = running.over(batches)
        try:
            prepared = self._arms[transaction.arm].prepare(task, batches)
        except (ConflictError, StorageError, ControlError) as error:
            # Whoever took over goes on meanwhile, which looks like all sorts of trouble from here.
            if isinstance(error, Diverged) and "found" in error.fields:
                self._divergence.mark(transaction.dataset_id, transaction.id, transaction.fence)
            if isinstance(error, LeaseLost) or self._ledger.still_open(transaction):
                raise
            raise lease_lost(transaction) from error
        if isinstance(prepared, NothingToWrite):
            job.nothing = prepared
            return
        delta = prepared.delta if running is None else Delta(running.digest, EMPTY)
        # Not that of before: the transaction may have moved on, past another engine's compaction.
        job.prepared = replace(prepared, digest=prepared.digest or digest_of(job.transaction, delta))

    def _bring(self, job: Job, bring: Callable[[WriteTask], Brought], check: Callable[[], None]) -> None:
        """Prepare a version of another arm, unless this one holds it."""
        transaction = job.transaction
        newest = transaction.arm_parent.version if transaction.arm_parent is not None else 0
        if newest >= transaction.version:
            return
        self._faults.at("prepare")
        # Of a write that was committed without its mirror, or of a process that woke up after it was taken over.
        self._arms[transaction.arm].discard_after(job.table, newest, transaction)
        task = other_arm_task(transaction, transaction.arm, transaction.arm_parent, job.table, check)
        try:
            brought = bring(task)
        except LakewardError as error:
            if isinstance(error, LeaseLost) or self._ledger.still_open(transaction):
                raise
            raise lease_lost(transaction) from error
        job.prepared, job.mirrored = brought.prepared, brought.mirrored

    def _mirror(self, job: Job, heartbeat: Heartbeat, check: Callable[[], None]) -> None:
        if job.prepared is None or job.transaction.mirror is None or job.prepared.still:
            return
        self._mirror_step.run(job, place_of(job, job.prepared, self._base(job)), check)
        if heartbeat.lost:
            raise lease_lost(job.transaction)

    @told("write.audit", about_job)
    def _audit(self, job: Job) -> None:
        self._faults.at("audit")
        if job.prepared is None:
            if job.output.audit_nothing is not None:
                job.output.audit_nothing()
        elif job.output.audit is not None:
            table, prepared = place_of(job, job.prepared, self._base(job))
            found = job.output.audit(PreparedVersion(job.transaction.arm, table, prepared, job.prepared.counts))
            if found is not None:
                job.prepared = replace(job.prepared, digest=(found.high, found.low))

    def _base(self, job: Job) -> int:
        """Return the base that decide will record for the prepared version."""
        transaction = job.transaction
        if job.prepared is None or not job.prepared.rebases:
            held = self._ledger.arm_version(transaction.dataset_id, transaction.arm, transaction.parent_version)
            parent = held or transaction.arm_parent
            if parent is not None:
                return parent.base_version
        return transaction.version

    @told("write.decide")
    def _decide(self, jobs: Sequence[Job]) -> None:
        self._faults.at("decide")
        decisions = [decision_of(job, job.prepared) for job in jobs if job.prepared is not None]
        idle = [each for each in map(idle_of, jobs) if each is not None]
        if not decisions and not idle:
            return
        try:
            self._ledger.decide(decisions, idle)
        except DatabaseUnavailable:
            # The answer was lost, not the decision. One row tells it for the whole build; while nothing can be asked,
            # nothing may be removed.
            if not decisions or outcome_of(decisions[0].transaction, self._ledger, self._clock) != "committed":
                raise
        self._faults.at("decide:committed")

    @told("write.publish", about_job)
    def _publish(self, job: Job) -> None:
        self._faults.at("publish")
        transaction = job.transaction
        try:
            assert job.prepared is not None, "else there is nothing to publish"
            # No arm that publishes needs the base, which only reading rows does.
            place = place_of(job, job.prepared, transaction.version)
            places = {transaction.arm: place}
            if job.mirrored is not None:
                table = replace(place[0], identifier=job.mirrored.identifier or place[0].identifier)
                places[job.mirrored.arm] = (table, job.mirrored.place)
            self._recovery.publish_places(transaction.dataset_id, transaction.id, places)
        except (StorageError, Diverged, DatabaseUnavailable) as error:
            # The build stands: readers go through the ledger. Recovery publishes again before the next write.
            log.warning(
                "version %d of dataset %s is committed but not published yet: %s",
                transaction.version,
                transaction.dataset,
                error,
            )

    def _abort(self, job: Job, reason: str) -> None:
        """Remove what the job prepared and end its transaction; whatever that can't do, recovery does later."""
        transaction = job.transaction
        try:
            # Interrupted while it decided, or after: what is committed must not be removed. What was taken over is
            # removed once more: a process that woke up late may have prepared it after that was done.
            if self._ledger.status(transaction) == "committed":
                return
            arms = (transaction.arm, transaction.mirror.arm if transaction.mirror is not None else None)
            self._recovery.discard(job.table, transaction, [arm for arm in arms if arm is not None])
            self._ledger.abort(transaction.id, transaction.fence, reason)
        except Exception as error:
            log.warning(
                "version %d of dataset %s could not be removed now; recovery will: %s",
                transaction.version,
                transaction.dataset,
                error,
            )
            self._let_go(transaction)

    def _let_go(self, transaction: OpenTransaction) -> None:
        """End our lease, so that recovery need not wait for it: this process lives, and looks like a busy owner."""
        try:
            self._ledger.let_go(transaction.id, transaction.fence)
        except LakewardError as error:
            log.warning("the lease on dataset %s ends by itself: %s", transaction.dataset, error)
