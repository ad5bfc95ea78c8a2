"""The port of an arm: what a place for rows must be able to do. An arm knows nothing of routes, pipelines or flags.

Adding an arm is adding one file to `arms/`; the conformance suite in `tests/conformance` then runs over it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa

from lakeward.clock import Faults, Ids
from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion, Counts, OpenTransaction
from lakeward.storage.duck import Duck
from lakeward.storage.filters import Filter
from lakeward.storage.leftovers import Leftover, TidyTask
from lakeward.storage.settings import StorageSettings
from lakeward.storage.table import TableRef
from lakeward.types.digest import Digest


@dataclass(frozen=True)
class WriteTask:
    """One write that an arm makes durable and keeps invisible.

    Args:
        table: the dataset.
        transaction: the open transaction, whose verb says what to do.
        parent: the newest version that this arm holds, which the write starts from; None if it holds none.
        check: raises if the transaction's lease is lost; called between batches.
    """

    table: TableRef
    transaction: OpenTransaction
    parent: ArmVersion | None
    check: Callable[[], None]


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
    iceberg_namespace: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Scan:
    """Which rows and columns of one version.

    Args:
        columns: business columns, in the order wanted.
        identity: add the identity columns at the end.
        since: only rows whose `__version` is greater.
        where: a checked predicate.
    """

    columns: tuple[str, ...]
    identity: bool = False
    since: int | None = None
    where: Filter | None = None


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

    @abstractmethod
    def __init__(self, context: ArmContext) -> None: ...

    @abstractmethod
    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared:
        """Make the rows durable under the transaction's version, invisible to readers of other versions.

        Args:
            task: the write. Its verb is one of `VERBS`, or `copy`: replace by rows that bring their identity columns.
            batches: business columns in the dataset's Arrow schema, for `copy` with the identity columns behind.
        """

    @abstractmethod
    def scan(self, table: TableRef, version: ArmVersion, scan: Scan) -> pa.RecordBatchReader:
        """Stream rows of one version, in no particular order, in the Arrow types of the dataset's schema."""

    @abstractmethod
    def digest(self, table: TableRef, version: ArmVersion) -> Digest:
        """Compute the digest of one version from the rows themselves."""

    @abstractmethod
    def publish(self, table: TableRef, version: ArmVersion) -> None:
        """Show a committed version to engines that read the arm directly.

        Raises:
            Diverged: somebody else moved the arm's own head.
        """

    @abstractmethod
    def discard(self, table: TableRef, version: int) -> None:
        """Remove what an aborted transaction prepared under `version`."""

    def tidy(self, task: TidyTask) -> Iterator[Leftover]:
        """Remove what no version, reader or writer needs any more; yield each thing when it is gone.

        Repeating it, cut short or together with others, loses nothing. An arm that leaves nothing behind has nothing
        to do.
        """
        return iter(())

    @abstractmethod
    def locate(self, table: TableRef, version: ArmVersion) -> dict[str, str]:
        """Say where the rows physically are, for people and other engines."""
