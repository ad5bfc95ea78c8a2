"""Maintenance: a dataset with many versions stays fast and leaves nothing behind.

For each dataset, in this order, so that whoever stops in between leaves garbage and never a hole:

    recover    what dead processes left is finished or removed
    mirror     what a mirror has missed is brought to it
    compact    data files that have gathered delete files, or are small, are rewritten as a version of their own
    expire     the ledger ends the versions beyond the policy; from here on no reader is sent there
    tidy       each arm removes what no version needs: snapshots, then rows and files, one by one
    forget     the ledger drops the entries of versions that have nothing left, and old findings of comparisons

Anybody may do it at any time, together with others, readers and writers.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakeward.clock import Faults
from lakeward.control.parity import ParityChecks
from lakeward.control.retention import Retention
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LakewardError, LockTimeout, UsageError
from lakeward.storage.arm import StorageArm
from lakeward.storage.compaction import Compaction
from lakeward.storage.leftovers import Leftover, Rewriting, TidyTask
from lakeward.storage.recovery import Recovered, Recovery
from lakeward.storage.replication import Lag, Replication
from lakeward.storage.table import table_ref

DEFAULT_SECONDS = 3600.0
"""What is younger, or was needed so recently, is left alone."""

Progress = Callable[[str, int], None]
"""Is told what is done, and how many things of it are gone so far."""

log = logging.getLogger("lakeward.maintenance")


@dataclass(frozen=True)
class Failure:
    """A dataset that could not be maintained to the end, and why."""

    dataset: str
    error: str


@dataclass(frozen=True)
class MaintenanceReport:
    """What maintenance did; in a dry run, what it would do."""

    dry_run: bool
    recovered: list[Recovered] = field(default_factory=list)
    mirrored: list[Lag] = field(default_factory=list)
    """How far mirrors were behind before."""
    compacted: list[Rewriting] = field(default_factory=list)
    removed: list[Leftover] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    purged: list[str] = field(default_factory=list)
    """What was dropped and is gone for good, as in `dataset main.sales.orders`."""
    notes: list[str] = field(default_factory=list)
    """What of it stays, or has to wait, and why."""

    @property
    def bytes(self) -> int:
        """The size of the files among them."""
        return sum(each.bytes for each in self.removed)

    def totals(self) -> dict[str, tuple[int, int]]:
        """Return count and bytes by kind, in the order in which they came."""
        found: dict[str, tuple[int, int]] = {}
        for each in self.removed:
            count, size = found.get(each.kind, (0, 0))
            found[each.kind] = (count + each.count, size + each.bytes)
        return found

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "dry_run": self.dry_run,
            "recovered": [dict(vars(each)) for each in self.recovered],
            "mirrored": [each.to_json() for each in self.mirrored],
            "compacted": [each.to_json() for each in self.compacted],
            "removed": [each.to_json() for each in self.removed],
            "totals": {kind: {"count": count, "bytes": size} for kind, (count, size) in self.totals().items()},
            "bytes": self.bytes,
            "failures": [dict(vars(each)) for each in self.failures],
            "purged": self.purged,
            "notes": self.notes,
        }


class Maintenance:
    """Maintains the datasets of one workspace.

    Args:
        tree: names and what they stand for.
        retention: the policy, and what the ledger holds.
        recovery: comes first.
        replication: comes next.
        compaction: comes third.
        arms: by name.
        parity: what comparisons found.
        kept_findings: how many of those stay, of each kind.
        lease_seconds: the longest time that a silent writer keeps what it has; no grace is shorter.
        faults: called as `maintain:mirrored`, `maintain:compacted`, `maintain:expired` and `maintain:tidied` between
            the steps.
    """

    def __init__(
        self,
        tree: Tree,
        retention: Retention,
        recovery: Recovery,
        replication: Replication,
        compaction: Compaction,
        arms: Mapping[str, StorageArm],
        parity: ParityChecks,
        *,
        kept_findings: int,
        lease_seconds: float,
        faults: Faults,
    ) -> None:
        self._tree = tree
        self._retention = retention
        self._recovery = recovery
        self._replication = replication
        self._compaction = compaction
        self._arms = arms
        self._parity = parity
        self._kept_findings = kept_findings
        self._lease_seconds = lease_seconds
        self._faults = faults

    def check_grace(self, seconds: float) -> None:
        """Raise UsageError if so short a grace could take away what a living writer has in its hands."""
        if seconds < self._lease_seconds:
            raise UsageError(
                f"what is {seconds:g} s old may still be in a writer's hands: leases last {self._lease_seconds:g} s",
                safe="nothing was changed",
                next_step=f"pass at least that: --older-than {self._lease_seconds:g}s",
            )

    def run(
        self,
        datasets: Sequence[DatasetRecord],
        *,
        older_than: float = DEFAULT_SECONDS,
        dry_run: bool = False,
        progress: Progress | None = None,
    ) -> MaintenanceReport:
        """Maintain datasets, one after the other. One that fails is reported, and the others are maintained.

        Args:
            datasets: which.
            older_than: the grace, in seconds: what is younger, or was needed so recently, stays.
            dry_run: find out, and change nothing.
            progress: is told what is done.

        Raises:
            UsageError: the grace is shorter than a lease.
        """
        self.check_grace(older_than)
        report = MaintenanceReport(dry_run)
        for dataset in datasets:
            count = 0
            try:
                if not dry_run:
                    report.recovered.extend(self._recovery.recover(dataset.id))
                self._mirror(dataset, report, progress)
                self._compact(dataset, report, progress)
                for leftover in self._tidy(dataset.id, older_than, dry_run):
                    report.removed.append(leftover)
                    count += leftover.count
                    if progress is not None:
                        progress(f"tidying {dataset.name}", count)
                report.removed.extend(self._forget_findings(dataset, older_than, dry_run))
            except LakewardError as error:
                log.warning("dataset %s was not maintained to the end: %s", dataset.name, error)
                report.failures.append(Failure(dataset.name, error.message))
            except Exception as error:
                log.exception("dataset %s was not maintained to the end", dataset.name)
                report.failures.append(Failure(dataset.name, f"{type(error).__name__}: {error}"))
        return report

    def _mirror(self, dataset: DatasetRecord, report: MaintenanceReport, progress: Progress | None) -> None:
        """Bring the mirror up to the head. What comes after does not depend on it."""
        record = self._tree.by_id(dataset.id)
        mirror = record.route.mirror_arm
        if mirror is None or (lag := self._replication.lag(record, mirror)).current:
            return
        if progress is not None:
            progress(f"mirroring {record.name}", 0)
        try:
            if not report.dry_run:
                self._replication.catch_up(record, mirror)
            report.mirrored.append(lag)
        except LakewardError as error:
            if isinstance(error, LockTimeout) and error.fields.get("backfill"):
                log.info("dataset %s: its mirror, the %s arm, gets all rows at this moment", record.name, mirror)
                return
            log.warning("dataset %s: its mirror, the %s arm, is still behind: %s", record.name, mirror, error)
            report.failures.append(Failure(record.name, f"its mirror is still behind: {error.message}"))
        self._faults.at("maintain:mirrored")

    def _compact(self, dataset: DatasetRecord, report: MaintenanceReport, progress: Progress | None) -> None:
        """Rewrite what is worth it. What comes after does not depend on it, and so a failure does not keep it away."""
        if progress is not None:
            progress(f"compacting {dataset.name}", 0)
        try:
            report.compacted.extend(self._compaction.asked(dataset.id, dry_run=report.dry_run))
        except LakewardError as error:
            log.warning("dataset %s was not compacted: %s", dataset.name, error)
            report.failures.append(Failure(dataset.name, f"not compacted: {error.message}"))
        self._faults.at("maintain:compacted")

    def _tidy(self, dataset_id: int, grace_seconds: float, dry_run: bool) -> Iterator[Leftover]:
        # In this order: the head first, so that all versions up to it are among those held; and what is open before the
        # arms look at their files, so that what was prepared since is newer than all that they remove.
        record = self._tree.by_id(dataset_id)
        open_seconds = self._retention.open_seconds(dataset_id)
        held = self._retention.expire(dataset_id, dry_run=dry_run)
        ended = sorted({each.version for each in held if each.ended})
        yield from (Leftover(record.name, "version", str(version)) for version in ended)
        self._faults.at("maintain:expired")
        task = TidyTask(
            table=table_ref(record),
            held=held,
            head_version=record.head_version,
            diverged=record.status == "diverged",
            grace_seconds=grace_seconds,
            open_seconds=open_seconds,
            dry_run=dry_run,
        )
        for name, arm in self._arms.items():
            yield from arm.tidy(task)
            self._faults.at("maintain:tidied")
            if not dry_run:
                gone = [each.version for each in task.of_arm(name) if not each.needed(grace_seconds)]
                self._retention.forget(dataset_id, name, gone)

    def _forget_findings(self, dataset: DatasetRecord, grace_seconds: float, dry_run: bool) -> Iterator[Leftover]:
        keep = self._kept_findings
        count = self._parity.prune(dataset.id, keep=keep, grace_seconds=grace_seconds, dry_run=dry_run)
        if count:
            what = f"findings older than the newest {keep:,} of a kind"
            yield Leftover(dataset.name, "comparison", what, count=count)
