"""What the ledger hands out: open and past transactions, windows, and where an arm holds a version."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from lakeward.access.principal import Place
from lakeward.control.audit import entry
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.routes import Route


@dataclass(frozen=True)
class Window:
    """The versions `(low, high]` of a source that a build reads; `low` is 0 for a full read."""

    low: int
    high: int


@dataclass(frozen=True)
class Intent:
    """What a build wants to open: one transaction on one dataset."""

    dataset_id: int
    dataset: str
    kind: str
    verb: str
    build_id: uuid.UUID
    writer: str
    arm: str | None = None
    """The arm to write to; None: the route's primary."""
    pipeline: str | None = None
    fingerprint: str | None = None
    """What the pipeline means; None: no pipeline writes."""
    windows: Mapping[int, Window] = field(default_factory=dict)
    past_mirror: bool = False
    """Goes on from a version that another arm has not published, where the one that serves has nothing to publish."""
    serves: str | None = None
    """The arm that serves when this is done; None: the route's primary."""


@dataclass(frozen=True)
class OpenTransaction:
    """A transaction that this process holds the lease of. Nothing of it is visible before it is decided."""

    id: int
    dataset_id: int
    dataset: str
    version: int
    parent_version: int
    fence: int
    arm: str
    route: Route
    build_id: uuid.UUID
    opened_at: datetime
    next_row_id: int
    next_row_index: int
    parent_row_count: int
    kind: str
    verb: str
    windows: Mapping[int, Window]
    identifier: TableIdentifier
    """Where the dataset's Iceberg table was when it was opened, if it had one."""
    writer: str = ""
    """The named place in the product that writes."""
    parent_digest: tuple[int, int] | None = None
    """The recorded digest of the parent version, high and low half; None: nobody has computed it."""
    arm_parent: ArmVersion | None = None
    """The newest version that the arm held when it was opened."""
    mirror: Mirror | None = None
    """The arm that gets what is written besides; None: there is none, or a backfill is under way to it."""
    expectations: tuple[Any, ...] = ()
    """What the dataset itself is expected to be, in the form of a pipeline's."""


class Claim(Protocol):
    """An open transaction in somebody's hands: an `OpenTransaction`, or an `Unfinished` one that recovery took over."""

    @property
    def id(self) -> int:
        """Of the transaction."""
        ...

    @property
    def fence(self) -> int:
        """That of the owner; a later owner has a higher one."""
        ...


@dataclass(frozen=True)
class ArmVersion:
    """Where an arm holds a version. `base_version` is for the Postgres arm, the snapshots are for the Iceberg arm.

    `unproved` is the transaction of the backfill that brought it, until it was compared: see `proofs`.
    """

    version: int
    base_version: int
    snapshot_id: int | None
    parent_snapshot_id: int | None
    unproved: int | None = None


@dataclass(frozen=True)
class Mirror:
    """The arm that a route mirrors to, and the newest version that it holds, if any."""

    arm: str
    newest: ArmVersion | None


@dataclass(frozen=True)
class Mirrored:
    """A version that is prepared on another arm than the one that it was written to, and was compared there.

    Args:
        arm: the other arm.
        place: where that holds the version; it was not compared if that says so.
        rows: how many rows were compared.
        identifier: where its Iceberg table is.
        compared: `write`: what changed; `full`: all rows.
    """

    arm: str
    place: ArmVersion
    rows: int
    identifier: TableIdentifier | None = None
    compared: str = "write"


@dataclass(frozen=True)
class Counts:
    """What a write did; `row_count` is the dataset's new total.

    `rows_in = added + updated + unchanged + skipped`, and `+ deleted` for `changes` and `delete`.
    """

    rows_in: int
    added: int
    updated: int
    unchanged: int
    deleted: int
    skipped: int
    row_count: int

    @classmethod
    def same(cls, rows: int) -> Counts:
        """Return the counts of what leaves all rows of a dataset as they are."""
        return cls(rows, 0, 0, rows, 0, 0, rows)


@dataclass(frozen=True)
class Resolution:
    """How a divergence ends, for the audit log.

    Args:
        actor: who decided it.
        action: `ledger.adopt` or `ledger.restore`.
        found: the snapshot that another engine left `main` at; None: it left none.
        ours: the snapshot of our newest version until then.
        place: of the dataset.
    """

    actor: str
    action: str
    found: int | None
    ours: int | None
    place: Place = ()

    def audit_entry(self, subject: str, snapshot: int | None) -> dict[str, object]:
        """Return the parameters of the audit log's statement.

        Args:
            subject: the dataset's name.
            snapshot: that of the newest version from now on.
        """
        before, after = {"main": self.found, "ours": self.ours}, {"ours": snapshot}
        return entry(self.actor, self.action, subject, before, after, self.place)


@dataclass(frozen=True)
class FileRead:
    """A file of a source, as it was when its rows were read.

    Args:
        path: where it is, whole, with all links resolved.
        size: in bytes.
        state: what changes whenever it is written, and is told without reading it.
        hash: what changes only if its content does.
    """

    path: str
    size: int
    state: str
    hash: str


@dataclass(frozen=True)
class Fed:
    """What a write read outside the workspace, and up to where: the rows and this count together.

    Args:
        source, relation: the source's name, and the full name of the table there.
        position: the connector's own, as JSON; None: it can't tell one.
        alone: whether it is worth a version of its own where all rows were there already, lest they be read again.
        whole: whether the dataset has the rows of what was read now, and of nothing that was read before.
        files: those that were read, each once; none, if the source is none of files.
        begins: whether it is worth a version also where there were no rows at all.
    """

    source: str
    relation: str
    position: Mapping[str, Any] | None
    alone: bool = False
    whole: bool = False
    files: tuple[FileRead, ...] = ()
    begins: bool = False


@dataclass(frozen=True)
class Remembered:
    """A request that was given a key, and what came of it; see `idempotency`.

    Args:
        key: the key.
        verb, writer: how the request wrote, and for which named place in the product.
        rows: the digest of its rows, in the columns that its verb takes: their number, high and low half.
        result: what its caller was told, as JSON.
    """

    key: str
    verb: str
    writer: str
    rows: tuple[int, int, int]
    result: Mapping[str, Any]


@dataclass(frozen=True)
class Idle:
    """A transaction that had nothing to write. It ends as such, and its key is remembered nevertheless."""

    transaction: OpenTransaction
    remembered: Remembered


@dataclass(frozen=True)
class Decision:
    """What decide makes of an open transaction, all at once with those of the other outputs of its build."""

    transaction: OpenTransaction
    counts: Counts
    next_row_id: int
    next_row_index: int
    rebases: bool
    publishes: bool
    snapshot_id: int | None = None
    parent_snapshot_id: int | None = None
    identifier: TableIdentifier | None = None
    digest: tuple[int, int] | None = None
    carries: bool = False
    """It changes no row, so every arm that holds the version before holds this one."""
    resolution: Resolution | None = None
    """Ends the dataset's divergence with it."""
    author: str | None = None
    """The person who edited the rows; None: no person did."""
    place: Place = ()
    """Of the dataset."""
    mirrored: Mirrored | None = None
    """What the mirror has of it."""
    mirror_error: str | None = None
    """Why the mirror has not got it."""
    mismatch: str | None = None
    """What a comparison with the mirror found, if the arms differed: that blocks a switch."""
    route: Route | None = None
    """The dataset's route from then on; None: it stays as it is. Its epoch is one more, whatever this one says."""
    fed: Fed | None = None
    """The table of a source that its rows are from."""
    remembered: Remembered | None = None
    """The key that its request was given, with what came of it."""


@dataclass(frozen=True)
class Unfinished:
    """A transaction that recovery has to look at.

    Args:
        version: what it is of on the arms.
        arms: those that may have something of it.
    """

    id: int
    dataset_id: int
    version: int
    parent_version: int
    arms: tuple[str, ...]
    status: str
    fence: int
    kind: str


EDIT = "dataset.edit"
"""The action of the audit log that says who edited the rows of a version."""

NOTHING_TO_WRITE = "there was nothing to write"
"""Why a write was ended whose rows were there already; it changed nothing, and is no failure."""


@dataclass(frozen=True)
class Transaction:
    """One row of the ledger: a write to one dataset, a copy between its arms, a compaction, or an adopted commit.

    What makes no version (`backfill` and `mirror` to another arm, a change of the `route`, a `move` of the table) has
    that of the head then. Counts are None until it is committed. `committed_at` is the database's clock.
    """

    dataset: str
    version: int
    parent_version: int
    kind: str
    verb: str
    arm: str
    status: str
    build_id: uuid.UUID
    pipeline: str | None
    writer: str
    opened_at: datetime
    committed_at: datetime | None
    published_at: datetime | None
    rows_in: int | None
    rows_added: int | None
    rows_updated: int | None
    rows_unchanged: int | None
    rows_deleted: int | None
    rows_skipped: int | None
    row_count: int | None
    owner: str | None
    error: str | None
    author: str | None = None
    """The person who edited the rows; None: no person did."""
    readable: bool = False
    """Whether it is a version, and can still be read: it has not expired, and its rows were not removed."""
    id: int = 0
    """Its number in the ledger."""
    actor: str | None = None
    """Who opened it; None: that was not written down then."""

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        plain: dict[str, object] = {}
        for name, value in vars(self).items():
            if isinstance(value, datetime):
                plain[name] = value.isoformat()
            else:
                plain[name] = str(value) if isinstance(value, uuid.UUID) else value
        return plain
