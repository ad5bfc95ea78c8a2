"""The port of an arm: what a place for rows must be able to do. An arm knows nothing of routes, pipelines or flags.

Adding an arm is adding one file to `arms/`; the conformance suite in `tests/conformance` then runs over it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import pyarrow as pa

from lakeward.clock import Faults, Ids
from lakeward.control.db import Database
from lakeward.control.divergence import Compaction
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.ledger import Ledger
from lakeward.control.moves import Relocated, Relocation
from lakeward.control.records import ArmVersion, Claim, Counts, OpenTransaction
from lakeward.errors import UsageError
from lakeward.in_place import InPlace
from lakeward.storage.duck import Duck
from lakeward.storage.filters import Filter
from lakeward.storage.foreign_head import ForeignHead, Survey
from lakeward.storage.guard import Guard
from lakeward.storage.leftovers import Gathered, Leftover, PurgeTask, Rewriting, TidyTask
from lakeward.storage.receiving import Receiver
from lakeward.storage.settings import CompactionPolicy, StorageSettings
from lakeward.storage.sides import Difference, Side, StreamedSide
from lakeward.storage.table import TableRef
from lakeward.types.digest import Digest
from lakeward.types.schema import IDENTITY_COLUMNS

OLD, NEW = "old\x01", "new\x01"
"""Names of the streams of an older and a newer version."""


@dataclass(frozen=True)
class WriteTask:
    """One write that an arm makes durable and keeps invisible.

    Args:
        table: the dataset.
        transaction: the open transaction, whose verb says what to do.
        parent: the newest version that this arm holds, which the write starts from; None if it holds none.
        check: raises if the transaction's lease is lost; called between batches.
        compacted: called before anything is written if another engine has compacted the parent: records that, and
            returns the transaction as it is then.
        adopts: the foreign snapshot that the transaction takes in, if it does.
        policy: which files a compaction is to rewrite.
    """

    table: TableRef
    transaction: OpenTransaction
    parent: ArmVersion | None
    check: Callable[[], None]
    compacted: Callable[[Compaction], OpenTransaction]
    adopts: int | None = None
    policy: CompactionPolicy | None = None


@dataclass(frozen=True)
class Prepared:
    """A version that is durable and invisible, and what decide has to record of it."""

    counts: Counts
    next_row_id: int
    next_row_index: int
    rebases: bool
    publishes: bool
    snapshot_id: int | None = None
    parent_snapshot_id: int | None = None
    identifier: TableIdentifier | None = None
    digest: tuple[int, int] | None = None
    delta: Delta | None = None
    still: bool = False
    """It changes no row: see `lakeward.storage.job.still`."""


@dataclass(frozen=True)
class Delta:
    """The digests of the rows that a version has and its parent has not, and the other way round.

    The version's digest is that of its parent, plus `added`, less `removed`.
    """

    added: Digest
    removed: Digest


@dataclass(frozen=True)
class NothingToWrite:
    """A write that would change no row, of which nothing was made durable.

    Args:
        unchanged, skipped: the rows of its input.
    """

    unchanged: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class Scan:
    """Which rows and columns of one version.

    Args:
        columns: business columns, in the order wanted.
        identity: add the identity columns at the end.
        since: only rows whose `__version` is greater.
        where: a checked predicate.
        keys: only rows whose primary key is one of these, in columns of its names and types; None: any.
    """

    columns: tuple[str, ...]
    identity: bool = False
    since: int | None = None
    where: Filter | None = None
    keys: pa.Table | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ArmContext:
    """What arms are made from."""

    database: Database
    ledger: Ledger
    settings: StorageSettings
    duck: Duck
    ids: Ids
    faults: Faults


class StorageArm(ABC):
    """A place where rows live.

    `prepare` may be cut short anywhere; `discard` and `publish` can be repeated and lose nothing.
    """

    name: ClassVar[str]

    has_files: ClassVar[bool] = False
    """Whether its rows are in files that an engine may read itself, see `in_place`."""

    mirrors: ClassVar[bool] = False
    """Whether what another arm has can be brought here bit by bit, see `replay`."""

    leftovers_hide: ClassVar[bool] = False
    """Whether what an aborted version left here is never seen, whatever comes later, and goes with a later one."""

    @abstractmethod
    def __init__(self, context: ArmContext) -> None: ...

    @abstractmethod
    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared | NothingToWrite:
        """Make the rows durable under the transaction's version, invisible to readers of other versions.

        A keyed verb refuses its input, or the dataset, before it writes anything (see `StagedBatch`); it says in
        `delta` what it did to the digest. For `replace` and `append` the protocol finds that out.

        Args:
            task: the write. Its verb is one of `VERBS`, or `copy`: replace by rows that bring their identity columns,
                or `compact`: the rows stay, and files are rewritten as its policy says.
            batches: the columns of the verb's `input_schema`, for `copy` the business columns with the identity columns
                behind.
        """

    def replay(self, task: WriteTask, difference: Difference) -> Prepared:
        """Make durable, invisible as `prepare` does, the version of another arm that differs so from the task's parent.

        Rows keep their identity. An arm that is nobody's mirror need not do it.

        Raises:
            StorageError: the arm has not the rows that are to go; nothing of it counts.
        """
        raise UsageError(f"the {self.name} arm is no mirror")

    @abstractmethod
    def scan(self, table: TableRef, version: ArmVersion, scan: Scan) -> pa.RecordBatchReader:
        """Stream rows of one version, in no particular order, in the Arrow types of the dataset's schema."""

    def in_place(self, reads: Sequence[tuple[TableRef, ArmVersion, Scan]]) -> list[InPlace | None]:
        """Say of each read how an engine can read itself what `scan` would stream; None: it can't, so stream it."""
        return [None] * len(reads)

    def changes(self, table: TableRef, old: ArmVersion, new: ArmVersion) -> tuple[Side, Side]:
        """Return rows of two versions, the older one first, that may not be in the other one.

        An arm that can leave out, without reading them, rows that are in both should: as it stands, it costs the
        dataset.
        """
        return scanned(self, table, old, OLD), scanned(self, table, new, NEW)

    @abstractmethod
    def digest(self, table: TableRef, version: ArmVersion) -> Digest:
        """Compute the digest of one version from the rows themselves."""

    def part_digests(
        self, table: TableRef, version: ArmVersion, width: int, where: Filter | None = None
    ) -> dict[int, Digest]:
        """Compute the digests of the parts of a version that have rows, by their number: `__row_index // width`.

        Args:
            table, version, width: which version of which dataset, in parts of how many positions.
            where: only rows of these positions, see `within`; None: all.
        """
        raise UsageError(f"the {self.name} arm is no mirror")

    @abstractmethod
    def publish(self, table: TableRef, version: ArmVersion) -> None:
        """Show a committed version to engines that read the arm directly.

        Raises:
            Diverged: somebody else moved the arm's own head.
        """

    @abstractmethod
    def discard(self, table: TableRef, version: int) -> None:
        """Remove what an aborted transaction prepared under `version`."""

    def discard_after(self, table: TableRef, newest: int, claim: Claim) -> None:
        """Remove whatever is there of later versions than the newest one that the arm holds, 0 if it holds none.

        For a mirror, which may have been left behind in the middle of a write that then was committed without it.

        Args:
            table: the dataset.
            newest: the newest version that the arm holds.
            claim: the open transaction that keeps all others from writing to the arm. Once it is another owner's,
                nothing is removed: what is there then may count.
        """
        raise UsageError(f"the {self.name} arm is no mirror")

    def tidy(self, task: TidyTask) -> Iterator[Leftover]:
        """Remove what no version, reader or writer needs any more; yield each thing when it is gone.

        Repeating it, cut short or together with others, loses nothing. An arm that leaves nothing behind has nothing
        to do.
        """
        return iter(())

    def drain(self, task: TidyTask) -> Iterator[Leftover]:
        """Remove all that there is of a dataset, which no reader is sent to any more; yield each thing when it is gone.

        Repeating it, cut short or not, loses nothing.
        """
        return self.tidy(task)

    def purge(self, task: PurgeTask) -> Iterator[Leftover]:
        """Remove all that there is of a dropped dataset, for good; yield each thing when it is gone.

        Cut short anywhere it is repeated, and goes on; at no time is there anything left that nobody knows of.
        """
        return self.drain(task.drained())

    def end_namespace(self, slugs: tuple[str, ...]) -> str | None:
        """Remove what there is under the name of a dropped schema or catalog, if it is empty.

        Args:
            slugs: that of the catalog, and of the schema if it is one.

        Returns:
            Why it is kept; None: there is nothing any more.
        """
        return None

    def gathered(self, dataset_id: int) -> Gathered | None:
        """Return what this process published last of a dataset, from memory; None: nothing, or the arm has no files."""
        return None

    def compactable(self, table: TableRef, version: ArmVersion, policy: CompactionPolicy) -> Rewriting | None:
        """Return what a compaction would do to a version; None: nothing. Reads no rows."""
        return None

    def compacted(self, table: TableRef, version: ArmVersion) -> Rewriting:
        """Return what the compaction that made a version has done."""
        raise UsageError(f"the {self.name} arm has no files to rewrite")

    def receiver(self) -> Receiver:
        """Return what says of this arm, before a dataset comes to it, whether it can."""
        raise UsageError(f"the {self.name} arm is no mirror")

    def relocate(self, table: TableRef, relocation: Relocation, guard: Guard) -> Relocated:
        """Give the dataset's table another name in its catalog, and that alone; no file is touched.

        Cut short anywhere it is repeated, by others too, and goes on; repeated when it is done, it changes nothing.

        Args:
            table: the dataset, whose slot is held by a transaction of kind `move`.
            relocation: from which name to which.
            guard: is entered around each request that changes something.

        Raises:
            MoveRefused: it can't be done, and nothing was.
            LeaseLost: another process took the move over, and finishes it.
            CatalogError: the catalog did not answer; it may have been done.
        """
        raise UsageError(f"tables of the {self.name} arm have no names")

    def obstacle(self, table: TableRef, relocation: Relocation) -> str | None:
        """Say what in the catalog is in the way of `relocate`, as far as it can be known without doing it.

        Returns:
            None: nothing.

        Raises:
            CatalogError: the catalog did not answer.
        """
        raise UsageError(f"tables of the {self.name} arm have no names")

    def foreign(self, table: TableRef, held: ArmVersion) -> ForeignHead | None:
        """Return where another engine has moved the arm's own head; None: it is at `held`.

        Args:
            table: the dataset.
            held: the newest version that the arm holds.
        """
        return None

    def survey(self, table: TableRef, held: ArmVersion, snapshot: int, version: int) -> Survey:
        """Compare the rows of a snapshot that `foreign` found with ours. Reads both.

        Args:
            table: the dataset.
            held: the newest version that the arm holds.
            snapshot: the foreign one.
            version: the one that it would become.

        Raises:
            DataError: the rows can't be read.
        """
        raise UsageError(f"no other engine writes to the {self.name} arm")

    def restore_columns(self, table: TableRef, held: ArmVersion) -> None:
        """Give the table the columns back that it had at `held`, if another engine changed them."""
        raise UsageError(f"no other engine writes to the {self.name} arm")

    def close(self) -> None:  # noqa: B027  most have nothing to give up
        """Give up connections. Reading or writing is not to be expected after it."""

    @abstractmethod
    def locate(self, table: TableRef, version: ArmVersion) -> dict[str, str]:
        """Say where the rows physically are, for people and other engines."""


def replayed(task: WriteTask) -> Prepared:
    """Return what decide has to record of a replay: the rows are another arm's, and no new one was numbered."""
    transaction = task.transaction
    return Prepared(
        Counts.same(transaction.parent_row_count),
        transaction.next_row_id,
        transaction.next_row_index,
        rebases=task.parent is None,
        publishes=False,
    )


def scanned(arm: StorageArm, table: TableRef, version: ArmVersion, name: str) -> Side:
    """Return all rows of a version as a `Side`, whatever the arm.

    Args:
        arm: where they are.
        table: the dataset.
        version: which version.
        name: what to call their stream.
    """

    def opened(columns: Sequence[str]) -> pa.RecordBatchReader:
        business = tuple(column for column in columns if column not in IDENTITY_COLUMNS)
        return arm.scan(table, version, Scan(business, identity=True))

    return StreamedSide(name, opened)
