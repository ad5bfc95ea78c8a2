"""Another engine's commits to a dataset: looking at them, adopting them as a new version, and restoring ours.

A commit that only compacted our rows is accepted by whoever writes next. Any other marks the dataset `diverged`:
nobody writes to it until somebody has chosen one of the two ways out, and readers stay at the last committed version.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakeward.access.guard import require
from lakeward.control.divergence import Divergence
from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion, Resolution
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ColumnMismatch, ConflictError, Diverged, UsageError
from lakeward.storage.arm import StorageArm
from lakeward.storage.foreign_head import ForeignHead, Survey
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.recovery import Recovery
from lakeward.storage.requests import Output, WriteResult
from lakeward.storage.table import table_ref
from lakeward.types.table import arrow_schema

ADOPT, RENUMBER = "adopt", "renumber"
"""The verbs of a transaction of kind `adopt` that takes foreign rows as they are, or with a sound identity."""

log = logging.getLogger("lakeward.foreign")


@dataclass(frozen=True)
class ForeignState:
    """What another engine did to a dataset's table, and what the two ways out would make of it.

    Args:
        dataset: its name.
        status: `ok` as long as no writer has met the foreign commit, then `diverged`.
        arm: where.
        version: our newest version.
        ours: its snapshot.
        found: the foreign snapshot; None: the table has no `main` any more.
        why: what was found, in words.
        survey: the foreign rows compared with ours, if they were asked for and can be read.
        refusal: why they can't be adopted as they are; None: they can, or nobody asked.
        renumbers: adopting them with `renumber` would help.
    """

    dataset: str
    status: str
    arm: str
    version: int
    ours: int | None
    found: int | None
    why: str
    survey: Survey | None = None
    refusal: str | None = None
    renumbers: bool = False

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "survey": dict(vars(self.survey)) if self.survey else None}


@dataclass(frozen=True)
class Restored:
    """What a restore did. `done`: there was something to restore; `kept`: the foreign snapshot, if it got a tag."""

    dataset: str
    version: int
    snapshot: int | None
    kept: int | None
    done: bool

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return dict(vars(self))


@dataclass(frozen=True)
class _Found:
    """A foreign head, and what the ledger knows of the arm that it is on."""

    dataset: DatasetRecord
    arm: StorageArm
    held: ArmVersion
    head: ForeignHead


class Foreign:
    """Resolves divergences, for one workspace."""

    def __init__(
        self,
        tree: Tree,
        ledger: Ledger,
        arms: Mapping[str, StorageArm],
        protocol: WriteProtocol,
        recovery: Recovery,
    ) -> None:
        self._tree = tree
        self._ledger = ledger
        self._divergence = Divergence(ledger.database)
        self._arms = arms
        self._protocol = protocol
        self._recovery = recovery

    def look(self, dataset: DatasetRecord, *, survey: bool = False) -> ForeignState | None:
        """Say what another engine did to the dataset; None: nothing. Changes nothing.

        Args:
            dataset: which one.
            survey: also compare its rows with ours, which reads both.
        """
        found = self._find(dataset)
        if found is None:
            return None
        record, held, head = found.dataset, found.held, found.head
        never = _never(found)
        rows, refusal, renumbers = None, never.message if never else None, False
        if survey and never is None:
            assert head.snapshot is not None, "refused otherwise"
            rows = found.arm.survey(table_ref(record), held, head.snapshot, record.head_version + 1)
            refusal, renumbers = rows.unsound, rows.unsound is not None or rows.unstamped > 0
        return ForeignState(
            record.name,
            record.status,
            found.arm.name,
            record.head_version,
            held.snapshot_id,
            head.snapshot,
            head.why,
            rows,
            refusal,
            renumbers,
        )

    def adopt(
        self, dataset: DatasetRecord, *, actor: str, renumber: bool = False, snapshot: int | None = None
    ) -> WriteResult:
        """Take the rows that another engine left as a new version; nothing happens if it did nothing.

        Args:
            dataset: which one.
            actor: who decides it, for the audit log.
            renumber: give rows without a sound identity a fresh one, and changed rows the new version.
            snapshot: only if the table is still at this snapshot; None: wherever it is.

        Raises:
            DataError: rows without a sound identity, and not `renumber`; or other columns.
            UsageError: the arm does not serve the dataset: its table is a copy.
            ConflictError: the table has moved on from `snapshot`, or somebody else writes.
        """
        require("ledger.adopt", dataset.slugs, dataset.name)
        # A publish that is only late is no divergence, and what a dead writer left open would be in the way.
        self._recovery.recover(dataset.id)
        found = self._find(dataset)
        if found is None:
            self._clear(dataset, "ledger.adopt", actor)
            return WriteResult.nothing(dataset.name, ADOPT, dataset.head_version, dataset.row_count)
        _check_still(found, snapshot)
        never = _never(found)
        if never is not None:
            raise never
        empty = pa.RecordBatchReader.from_batches(arrow_schema(dataset.schema), iter(()))
        output = Output(
            found.dataset,
            RENUMBER if renumber else ADOPT,
            lambda: empty,
            allow_empty=True,
            resolution=Resolution(actor, "ledger.adopt", found.head.snapshot, found.held.snapshot_id, dataset.slugs),
        )
        build = self._protocol.run([output], writer="ledger.adopt", kind="adopt", arm=found.arm.name)
        return build.transactions[0]

    def restore(self, dataset: DatasetRecord, *, actor: str, snapshot: int | None = None) -> Restored:
        """Set the table back to our newest version; nothing happens if it is there.

        Another engine's snapshot stays in the table under a tag, `foreign-<its id>`. Once the ledger has decided this,
        publishing moves `main`, and recovery does if this process dies.

        Args:
            dataset: which one.
            actor: who decides it, for the audit log.
            snapshot: only if the table is still at this snapshot; None: wherever it is.

        Raises:
            ConflictError: the table has moved on from `snapshot`, or somebody writes.
            Diverged: our snapshot is gone from the table, or the other engine committed again meanwhile.
        """
        require("ledger.restore", dataset.slugs, dataset.name)
        self._recovery.recover(dataset.id)
        found = self._find(dataset)
        if found is None:
            self._clear(dataset, "ledger.restore", actor)
            return Restored(dataset.name, dataset.head_version, None, None, done=False)
        _check_still(found, snapshot)
        record, held, head = found.dataset, found.held, found.head
        if head.lost:
            raise Diverged(
                f"dataset {record.name}: our snapshot {held.snapshot_id} is not in its Iceberg table any more",
                safe="nothing was changed",
                next_step=f"`lakeward ledger adopt {record.name}` takes the other engine's rows as a new version",
                dataset=record.name,
                expected=held.snapshot_id,
            )
        found.arm.restore_columns(table_ref(record), held)
        resolution = Resolution(actor, "ledger.restore", head.snapshot, held.snapshot_id, record.slugs)
        maker = self._divergence.restore(record.id, record.name, found.arm.name, held, head.snapshot, resolution)
        if maker is not None:
            self._recovery.publish(record.id, maker.id, [found.arm.name], maker.version)
        log.warning("dataset %s: main is set back from snapshot %s to ours", record.name, head.snapshot)
        kept = head.snapshot if maker is not None and not head.behind else None
        return Restored(record.name, record.head_version, held.snapshot_id, kept, done=True)

    def _find(self, dataset: DatasetRecord) -> _Found | None:
        record = self._tree.by_id(dataset.id)
        for arm in self._arms.values():
            held = self._ledger.newest_arm_version(record.id, arm.name)
            if held is None or held.unproved is not None:
                # A copy that was not compared yet is not what `main` is at.
                continue
            head = arm.foreign(table_ref(record), held)
            if head is not None and not self._publishing(record, arm, held, head):
                return _Found(record, arm, held, head)
        return None

    def _publishing(self, record: DatasetRecord, arm: StorageArm, held: ArmVersion, head: ForeignHead) -> bool:
        """Say whether `main` is only not yet at our version, which is committed and about to be published."""
        waits = record.status == "ok" and head.snapshot == held.parent_snapshot_id and head.columns is None
        return waits and self._divergence.unpublished(record.id)

    def _clear(self, dataset: DatasetRecord, action: str, actor: str) -> None:
        """End a divergence that somebody else undid."""
        if self._tree.by_id(dataset.id).status == "diverged":
            self._divergence.clear(dataset.id, dataset.name, Resolution(actor, action, None, None, dataset.slugs))


def _never(found: _Found) -> UsageError | ColumnMismatch | None:
    """Return why a foreign snapshot can't be adopted, whatever its rows are; None: nothing forbids it."""
    name, served = found.dataset.name, found.dataset.route.primary_arm
    about = {
        "safe": "nothing was changed",
        "next_step": f"`lakeward ledger restore {name}` brings back ours",
        "dataset": name,
    }
    if found.head.columns is not None:
        return ColumnMismatch(f"dataset {name} can't take another engine's rows: {found.head.columns}", **about)
    if found.head.snapshot is None:
        return UsageError(f"dataset {name} can't take another engine's rows: its table has no main branch", **about)
    if served != found.arm.name:
        return UsageError(
            f"dataset {name} can't take another engine's rows: it is served by the {served} arm, and its "
            "Iceberg table is a copy",
            **about,
        )
    return None


def _check_still(found: _Found, snapshot: int | None) -> None:
    if snapshot is not None and found.head.snapshot != snapshot:
        raise ConflictError(
            f"dataset {found.dataset.name}: its table is at snapshot {found.head.snapshot} by now, not at {snapshot}",
            safe="nothing was changed",
            next_step=f"look again: `lakeward ledger restore {found.dataset.name} --dry-run`",
            dataset=found.dataset.name,
            found=found.head.snapshot,
        )
