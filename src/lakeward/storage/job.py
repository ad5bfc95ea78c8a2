"""One output of a build on its way through the protocol: what each step adds to it, and what decide makes of it."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from lakeward import stopping
from lakeward.control.deciding import ROWLESS_KINDS, lease_lost
from lakeward.control.leases import Heartbeat
from lakeward.control.records import ArmVersion, Counts, Decision, Idle, Intent, Mirrored, OpenTransaction, Remembered
from lakeward.storage.arm import Delta, NothingToWrite, Prepared
from lakeward.storage.requests import Output, WriteResult
from lakeward.storage.running_digest import RunningDigest
from lakeward.storage.side_by_side import SideBySide
from lakeward.storage.table import TableRef
from lakeward.storage.verbs import VERBS
from lakeward.types.digest import EMPTY, Digest


@dataclass(frozen=True)
class Stream:
    """A stream of rows, and whether it turned out to have none."""

    reader: pa.RecordBatchReader
    empty: bool


@dataclass(frozen=True)
class Purpose:
    """What all outputs of a build are written for.

    Args:
        build_id: of the build.
        writer: the named place in the product that writes.
        pipeline: the pipeline that is built, if any.
        kind: `write`, `copy` to the other arm, `compact`, or `adopt` of another engine's snapshot.
        arm: the arm to write to; None: each dataset's primary.
    """

    build_id: uuid.UUID
    writer: str
    pipeline: str | None
    kind: str
    arm: str | None


@dataclass
class Job:
    """One output on its way through the steps."""

    output: Output
    transaction: OpenTransaction
    table: TableRef
    batches: Stream | None = None
    asked: RunningDigest | None = None
    """That of the request's rows; only of a request with a key."""
    prepared: Prepared | None = None
    nothing: NothingToWrite = field(default_factory=NothingToWrite)
    """What became of the input's rows where nothing is prepared."""
    mirrored: Mirrored | None = None
    """What the mirror has of it; for a transaction that makes no version, what it was for."""
    mirror_error: str | None = None
    """Why the mirror has not got it."""
    mismatch: str | None = None
    """What the mirror was found to have instead."""

    def give_up(self) -> None:
        """Let its rows end soon: another output of the build has failed."""
        if self.output.give_up is not None:
            self.output.give_up()

    @property
    def publishes(self) -> bool:
        """Whether an arm has to show it to other engines: not before it counts."""
        if self.mirrored is not None and self.mirrored.place.unproved is not None:
            return False
        snapshot = self.mirrored.place.snapshot_id if self.mirrored is not None else None
        return snapshot is not None or (self.prepared is not None and self.prepared.publishes)


def about_write(protocol: object, outputs: Sequence[Output], purpose: Purpose, width: int) -> dict[str, object]:
    """Return what is told of a write: see `lakeward.happenings`."""
    dataset = ", ".join(output.dataset.name for output in outputs)
    return {"dataset": dataset, "build": str(purpose.build_id), "writer": purpose.writer, "kind": purpose.kind}


def about_intent(protocol: object, output: Output, purpose: Purpose) -> dict[str, object]:
    """Return what is told of the first step of one output."""
    return {"dataset": output.dataset.name}


def about_job(protocol: object, job: Job, *_: object) -> dict[str, object]:
    """Return what is told of a step of one output."""
    return {"dataset": job.transaction.dataset, "version": job.transaction.version, "arm": job.transaction.arm}


def intent_of(output: Output, purpose: Purpose) -> Intent:
    """Return what the ledger is asked to open."""
    return Intent(
        dataset_id=output.dataset.id,
        dataset=output.dataset.name,
        kind=purpose.kind,
        verb=output.verb,
        build_id=purpose.build_id,
        writer=purpose.writer,
        arm=purpose.arm,
        pipeline=purpose.pipeline,
        fingerprint=output.fingerprint,
        windows=output.windows,
    )


def unless_empty(reader: pa.RecordBatchReader) -> Stream:
    """Look for the first row. A compute without rows is known before anything is written."""
    for batch in reader:
        if batch.num_rows:
            chained = itertools.chain([batch], reader)
            return Stream(pa.RecordBatchReader.from_batches(reader.schema, chained), empty=False)
    return Stream(pa.RecordBatchReader.from_batches(reader.schema, iter(())), empty=True)


def clears(verb: str) -> bool:
    """Say whether a write by zero rows would empty the dataset."""
    return verb in VERBS and VERBS[verb].clears


def digest_of(transaction: OpenTransaction, delta: Delta | None) -> tuple[int, int] | None:
    """Return the digest of a prepared version, if that of its parent is known and what the write did to it."""
    parent, rows = transaction.parent_digest, transaction.parent_row_count
    if transaction.kind in ROWLESS_KINDS:
        return parent
    if delta is None or (parent is None and rows):
        return None
    digest = (Digest(rows, *parent) if parent else EMPTY) + delta.added - delta.removed
    return digest.high, digest.low


def still(job: Job) -> Prepared | None:
    """Return the version that says only how far the sources were read, where nothing is to be written; or None.

    Without it, the next build would read the same versions again, and every one after it. It is held wherever the
    version before it is, in the same snapshot and rows. A dataset without a version has nothing to hold it.
    """
    transaction, held = job.transaction, job.transaction.arm_parent
    unchanged, skipped = job.nothing.unchanged, job.nothing.skipped
    fed = job.output.fed() if job.output.fed is not None else None
    there = unchanged + skipped > 0
    tells = bool(job.output.windows) or (fed is not None and (fed.begins or (fed.alone and there)))
    if not tells or held is None or held.version != transaction.parent_version:
        return None
    return Prepared(
        counts=Counts(unchanged + skipped, 0, 0, unchanged, 0, skipped, transaction.parent_row_count),
        next_row_id=transaction.next_row_id,
        next_row_index=transaction.next_row_index,
        rebases=False,
        publishes=False,
        snapshot_id=held.snapshot_id,
        parent_snapshot_id=held.parent_snapshot_id,
        digest=transaction.parent_digest,
        still=True,
    )


def place_of(job: Job, prepared: Prepared, base: int) -> tuple[TableRef, ArmVersion]:
    """Return where a prepared version is, as decide records it. A first write's table is where it was prepared."""
    held = ArmVersion(job.transaction.version, base, prepared.snapshot_id, prepared.parent_snapshot_id)
    return replace(job.table, identifier=prepared.identifier or job.table.identifier), held


def decision_of(job: Job, prepared: Prepared) -> Decision:
    """Return what decide is asked to record of a prepared version."""
    return Decision(
        transaction=job.transaction,
        counts=prepared.counts,
        next_row_id=prepared.next_row_id,
        next_row_index=prepared.next_row_index,
        rebases=prepared.rebases,
        publishes=job.publishes,
        snapshot_id=prepared.snapshot_id,
        parent_snapshot_id=prepared.parent_snapshot_id,
        identifier=prepared.identifier,
        digest=prepared.digest,
        carries=prepared.still,
        resolution=job.output.resolution,
        author=job.output.author,
        place=job.output.dataset.slugs,
        mirrored=job.mirrored,
        mirror_error=job.mirror_error,
        mismatch=job.mismatch,
        fed=job.output.fed() if job.output.fed is not None else None,
        remembered=remembered(job),
    )


def idle_of(job: Job) -> Idle | None:
    """Return what is remembered of a request that had nothing to write; None: it has something to write, or no key."""
    kept = remembered(job) if job.prepared is None else None
    return Idle(job.transaction, kept) if kept is not None else None


def remembered(job: Job) -> Remembered | None:
    """Return what is to be remembered of the request, once it is known what came of it; None: it has no key."""
    if job.output.idempotency_key is None or job.asked is None:
        return None
    transaction, result = job.transaction, result_of(job).to_json()
    rows = job.asked.digest
    digest = (rows.count, rows.high, rows.low)
    return Remembered(job.output.idempotency_key, transaction.verb, transaction.writer, digest, result)


def result_of(job: Job) -> WriteResult:
    """Return what the caller of a build that stands is told of one output."""
    transaction, prepared = job.transaction, job.prepared
    if prepared is None:
        return WriteResult.nothing(
            transaction.dataset,
            transaction.verb,
            transaction.parent_version,
            transaction.parent_row_count,
            transaction.build_id,
            job.nothing.unchanged,
            job.nothing.skipped,
        )
    counts = prepared.counts
    return WriteResult(
        dataset=transaction.dataset,
        version=transaction.version,
        verb=transaction.verb,
        rows_in=counts.rows_in,
        rows_added=counts.added,
        rows_updated=counts.updated,
        rows_unchanged=counts.unchanged,
        rows_deleted=counts.deleted,
        rows_skipped=counts.skipped,
        row_count=counts.row_count,
        committed=True,
        build_id=transaction.build_id,
    )


def checking(job: Job, heartbeat: Heartbeat, together: SideBySide[Job]) -> Callable[[], None]:
    """Return what raises LeaseLost once the job's lease is gone, and Stopped once another one has failed.

    Stopped, too, once the work that it is a part of is to end: see `lakeward.stopping`.
    """

    def check() -> None:
        stopping.check()
        together.check()
        if heartbeat.lost:
            raise lease_lost(job.transaction)

    return check
