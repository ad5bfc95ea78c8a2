"""What callers ask of the storage layer, and what they get back."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from lakeward.control.records import ArmVersion, Counts, Fed, Mirrored, OpenTransaction, Resolution, Window
from lakeward.control.tree import DatasetRecord
from lakeward.storage.arm import Prepared, WriteTask
from lakeward.storage.settings import CompactionPolicy
from lakeward.storage.table import TableRef
from lakeward.types.digest import Digest


@dataclass(frozen=True)
class ReadRequest:
    """Which rows of a dataset.

    Args:
        columns: business columns, in the order wanted; None: all of them.
        where: a SQL predicate over business and identity columns; rows for which it is true are kept.
        version: the dataset as it was at this version; None: at its head.
        since: only rows that were written after this version.
        after: only rows whose `__row_index` is greater.
        identity: add the identity columns at the end.
        arm: read from this arm only; None: from the one that serves.
        keys: only rows whose primary key is one of these, in columns of its names and types. Of few keys, few rows are
            read.
    """

    columns: tuple[str, ...] | None = None
    where: str | None = None
    version: int | None = None
    since: int | None = None
    identity: bool = False
    arm: str | None = None
    after: int | None = None
    keys: pa.Table | None = field(default=None, compare=False)


@dataclass(frozen=True)
class ChangesRequest:
    """What became of a dataset's rows between two versions.

    Args:
        since: the older version; 0: before the first.
        version: the newer one; None: the head.
        columns: business columns, in the order wanted; None: all of them.
        before: also the old image of each row that was updated.
        identity: add the identity columns at the end.
        arm: read from this arm only; None: from one that holds both versions, or else from two.
    """

    since: int
    version: int | None = None
    columns: tuple[str, ...] | None = None
    before: bool = True
    identity: bool = False
    arm: str | None = None


def no_rows() -> pa.RecordBatchReader:
    """Return a stream without a row."""
    return pa.RecordBatchReader.from_batches(pa.schema([]), iter(()))


@dataclass(frozen=True)
class Brought:
    """A version of another arm, prepared and compared.

    Args:
        prepared: what decide has to record of it.
        mirrored: where it is, if the transaction makes no version of its own.
    """

    prepared: Prepared
    mirrored: Mirrored | None


@dataclass(frozen=True)
class Output:
    """One dataset that a build writes.

    Args:
        dataset: which one.
        verb: how: the name of a `Verb`.
        rows: opens the stream of what the verb takes (`Verb.input_schema`) in its Arrow schema; called once, when it is
            prepared, or compared with the rows of the first request with its key.
        allow_empty: lets `replace` and `mirror` take zero rows.
        windows: per source dataset id, the versions that `rows` reads.
        fingerprint: what the pipeline that writes it means; None: no pipeline does.
        audit: looks at the prepared version and raises to refuse it; the digest that it returns, if any, is recorded.
        audit_nothing: is called instead where there was nothing to write; raises to refuse the build.
        opened: is told the transaction, before anything is computed.
        resolution: how it ends the dataset's divergence; only where another engine's snapshot is adopted.
        policy: what is to be rewritten; only for a compaction.
        give_up: lets `rows` end soon, since another output of the build has failed; another thread calls it.
        fed: says what `rows` read outside the workspace, once they are read; recorded with them.
        author: the person who edited the rows, for the audit log; None: no person did.
        idempotency_key: names the request: one that is repeated with its key changes nothing, and gets the first one's
            result. Either every output of a build has one, or none.
        bring: prepares rows that another arm has, instead of `rows`: those of a version that is there, or of a copy.
    """

    dataset: DatasetRecord
    verb: str
    rows: Callable[[], pa.RecordBatchReader] = no_rows
    allow_empty: bool = False
    windows: Mapping[int, Window] = field(default_factory=dict)
    fingerprint: str | None = None
    audit: Callable[[PreparedVersion], Digest | None] | None = None
    audit_nothing: Callable[[], None] | None = None
    opened: Callable[[OpenTransaction], None] | None = None
    resolution: Resolution | None = None
    policy: CompactionPolicy | None = None
    author: str | None = None
    bring: Callable[[WriteTask], Brought] | None = None
    fed: Callable[[], Fed] | None = None
    idempotency_key: str | None = None
    give_up: Callable[[], None] | None = None


@dataclass(frozen=True)
class PreparedVersion:
    """A version that is durable on an arm and not yet visible to anybody; the facade reads it for an audit.

    Args:
        arm, table, where: where it is.
        counts: what the write did to the rows of the version before it.
    """

    arm: str
    table: TableRef
    where: ArmVersion
    counts: Counts


@dataclass(frozen=True)
class WriteResult:
    """What a write did to one dataset.

    Every row of the input is counted once: `rows_in = rows_added + rows_updated + rows_unchanged + rows_skipped`, and
    for `changes` and `delete`, whose input asks for deletions, `+ rows_deleted`. Where there was nothing to write,
    `version` is the version that the dataset had before, and `committed` is False. `repeated` says that it is the
    result of an earlier request with the same idempotency key: nothing was written this time. `warnings` says what is
    not as the dataset is expected to be, where that stops nothing.
    """

    dataset: str
    version: int
    verb: str
    rows_in: int
    rows_added: int
    rows_updated: int
    rows_unchanged: int
    rows_deleted: int
    rows_skipped: int
    row_count: int
    committed: bool
    build_id: uuid.UUID | None
    repeated: bool = field(default=False, compare=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    @classmethod
    def nothing(
        cls,
        dataset: str,
        verb: str,
        version: int,
        row_count: int,
        build_id: uuid.UUID | None = None,
        unchanged: int = 0,
        skipped: int = 0,
    ) -> WriteResult:
        """Return the result of a write that had nothing to write; the dataset stays at `version`."""
        rows_in = unchanged + skipped
        return cls(dataset, version, verb, rows_in, 0, 0, unchanged, 0, skipped, row_count, False, build_id)

    @classmethod
    def recalled(cls, found: Mapping[str, Any], dataset: str) -> WriteResult:
        """Return the result of an earlier request, as `to_json` told it, for one that repeats it.

        Args:
            found: what was told.
            dataset: its name by now.
        """
        build_id = uuid.UUID(found["build_id"]) if found["build_id"] is not None else None
        return cls(**{**found, "dataset": dataset, "build_id": build_id, "repeated": True, "warnings": ()})

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        build_id = str(self.build_id) if self.build_id else None
        return {**vars(self), "build_id": build_id, "warnings": list(self.warnings)}


@dataclass(frozen=True)
class BuildResult:
    """What one build did: its outputs became visible together.

    A pipeline whose outputs were up to date has no `build_id` and no `transactions`: there was no build.
    """

    build_id: uuid.UUID | None
    pipeline: str | None
    transactions: tuple[WriteResult, ...]
    warnings: tuple[str, ...] = ()
    """What was found on the way, and stopped nothing."""

    @property
    def up_to_date(self) -> bool:
        """Whether there was nothing to build."""
        return self.build_id is None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "build_id": str(self.build_id) if self.build_id else None,
            "pipeline": self.pipeline,
            "up_to_date": self.up_to_date,
            "transactions": [each.to_json() for each in self.transactions],
            "warnings": list(self.warnings),
        }
