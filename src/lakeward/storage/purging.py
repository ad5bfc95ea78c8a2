"""Ends what was dropped and can't come back any more: rows, tables and files, and the names that they were kept under.

For each dataset, in this order, so that whoever stops in between leaves nothing that nobody knows of:

    tidy     each arm removes what no version needs, as of any dataset, and says what it would purge: it must be able to
    begin    Postgres says that it is being purged; from here on it can't come back
    purge    each arm removes what it has of it, as its `purge` says
    finish   its slug is free; the ledger's past stays

Then come the schemas and catalogs in which nothing is left, and what arms have under their names, if it is empty.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping

from lakeward.clock import Faults
from lakeward.control.purges import Purges
from lakeward.control.retention import Retention
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LakewardError
from lakeward.storage.arm import StorageArm
from lakeward.storage.leftovers import Leftover, PurgeTask, TidyTask
from lakeward.storage.maintenance import Failure, MaintenanceReport, Progress
from lakeward.storage.table import table_ref

POINTS = ("purge:tidied", "purge:begun", "purge:listed", "purge:entry", "purge:file", "purge:emptied", "purge:arm")
"""Every name that `Faults.at` is called with here; those in the middle are the Iceberg arm's."""

log = logging.getLogger("lakeward.maintenance")


class Purging:
    """Purges the datasets, schemas and catalogs of one workspace.

    Args:
        tree: names and what they stand for.
        purges: says what is due, and takes note.
        retention: what the ledger holds.
        arms: by name.
        faults: called between the steps.
    """

    def __init__(
        self, tree: Tree, purges: Purges, retention: Retention, arms: Mapping[str, StorageArm], faults: Faults
    ) -> None:
        self._tree = tree
        self._purges = purges
        self._retention = retention
        self._arms = arms
        self._faults = faults

    def run(self, report: MaintenanceReport, grace_seconds: float, progress: Progress | None = None) -> None:
        """Purge what is due. What fails is reported, and gone on with next time.

        Args:
            report: takes what is removed, and says whether anything is to be.
            grace_seconds: what was dropped within it stays: somebody may be reading it.
            progress: is told what is done.
        """
        for due in self._purges.due(grace_seconds):
            record = self._tree.by_id(due.id, dropped=True)
            if progress is not None:
                progress(f"purging {record.name}", 0)
            try:
                report.removed.extend(self._dataset(record, report, grace_seconds, begun=due.begun))
            except LakewardError as error:
                if self._purges.is_purged(record.id):
                    continue  # by another process, which took away under our feet what we looked for
                log.warning("dataset %s was not purged to the end: %s", record.name, error)
                report.failures.append(Failure(record.name, f"not purged to the end: {error.message}"))
            else:
                # It may have come back meanwhile.
                if report.dry_run or self._purges.is_purged(record.id):
                    report.purged.append(f"dataset {record.name}")
        for level in ("schema", "catalog") if not report.dry_run else ():
            self._parents(level, report)

    def _dataset(
        self, record: DatasetRecord, report: MaintenanceReport, grace_seconds: float, *, begun: bool
    ) -> Iterator[Leftover]:
        """Purge one, and yield each thing that is gone; in a dry run, that would go."""
        if not begun:
            yield from self._tidied(record, grace_seconds, dry_run=report.dry_run)
            self._faults.at("purge:tidied")
        if not report.dry_run:
            if not begun:
                self._rehearse(record)
            if not self._purges.begin(record.id):
                return
            self._faults.at("purge:begun")
        for name, arm in self._arms.items():
            yield from arm.purge(self._task(record, name, dry_run=report.dry_run, note=report.notes.append))
            self._faults.at("purge:arm")
        if not report.dry_run:
            self._purges.finish(record.id, record.name)

    def _rehearse(self, record: DatasetRecord) -> None:
        """Raise what an arm has against it while the dataset can still come back."""
        for name, arm in self._arms.items():
            for _ in arm.purge(self._task(record, name, dry_run=True, note=log.debug)):
                pass

    def _tidied(self, record: DatasetRecord, grace_seconds: float, *, dry_run: bool) -> Iterator[Leftover]:
        for name, arm in self._arms.items():
            held = self._retention.held(record.id, name)
            yield from arm.tidy(
                TidyTask(
                    table=table_ref(record),
                    held=held,
                    head_version=record.head_version,
                    diverged=False,
                    grace_seconds=grace_seconds,
                    open_seconds=None,
                    dry_run=dry_run,
                    # A commit that lost a race would leave a file that nothing names, too young for anybody to remove.
                    commits=False,
                )
            )

    def _task(self, record: DatasetRecord, arm: str, *, dry_run: bool, note: Callable[[str], object]) -> PurgeTask:
        others = [each for each in self._purges.holders(arm) if each != record.id]
        return PurgeTask(
            table=table_ref(record),
            held=self._retention.held(record.id, arm),
            head_version=record.head_version,
            others=[table_ref(self._tree.by_id(each, dropped=True)) for each in others],
            dry_run=dry_run,
            note=note,
        )

    def _parents(self, level: str, report: MaintenanceReport) -> None:
        """Purge the schemas, or catalogs, in which nothing is left, once no arm has anything under their names."""
        for what in self._purges.due_parents(level, self._tree.workspace):
            try:
                kept = [reason for arm in self._arms.values() if (reason := arm.end_namespace(what.slugs))]
            except LakewardError as error:
                report.failures.append(Failure(what.name, f"not purged: {error.message}"))
                continue
            if kept:
                report.notes.append(f"{what.level} {what.name} is kept for now: {'; '.join(kept)}")
            elif self._purges.finish_parent(what):
                report.purged.append(f"{what.level} {what.name}")
