"""Maintenance of a whole workspace: datasets, models of builds that failed, and leftovers in the scratch directory."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from lakeward.access.guard import require
from lakeward.compute.scratch import remove_abandoned
from lakeward.control.audit import note
from lakeward.control.counters import Counters
from lakeward.control.idempotency import IdempotencyKeys
from lakeward.control.tree import Tree
from lakeward.pipelines.models.registry import Models
from lakeward.storage.leftovers import Leftover
from lakeward.storage.maintenance import Maintenance, MaintenanceReport, Progress
from lakeward.storage.purging import Purging

ACTION = "maintenance.run"

_SPILLED = "duckdb_temp_*"


class Upkeep:
    """Maintains a workspace.

    Args:
        tree: its names.
        maintenance: for its datasets.
        models: the registered ones.
        counters: forgets those of long ago.
        scratch: the directory for what queries spill.
        purging: for what was dropped.
        keys: those of requests, of which the old ones are forgotten.
    """

    def __init__(
        self,
        tree: Tree,
        maintenance: Maintenance,
        models: Models,
        counters: Counters,
        scratch: Path,
        purging: Purging,
        keys: IdempotencyKeys,
    ) -> None:
        self._purging = purging
        self._keys = keys
        self._tree = tree
        self._maintenance = maintenance
        self._models = models
        self._counters = counters
        self.scratch = scratch

    def run(
        self, datasets: Sequence[str], *, older_than: float, dry_run: bool = False, progress: Progress | None = None
    ) -> MaintenanceReport:
        """Maintain datasets; none named: all, what was dropped, models of builds that failed, the scratch directory.

        Raises:
            UnknownObject: no such dataset.
            UsageError: `older_than` is shorter than a lease.
        """
        if not datasets:
            require(ACTION)
        records = [self._tree.dataset(name) for name in dict.fromkeys(datasets)] if datasets else self._tree.datasets()
        for record in records if datasets else ():
            require(ACTION, record.slugs, record.name)
        report = self._maintenance.run(records, older_than=older_than, dry_run=dry_run, progress=progress)
        forgotten = self._keys.forget([record.id for record in records], dry_run=dry_run)
        what = "idempotency keys whose time is over"
        report.removed.extend(
            Leftover(record.name, "key", what, count=forgotten[record.id])
            for record in records
            if record.id in forgotten
        )
        if not datasets:
            self._purging.run(report, older_than, progress)
            aborted = self._models.tidy(dry_run=dry_run)
            report.removed.extend(Leftover("", "model", f"{name}@{version}", size) for name, version, size in aborted)
            report.removed.extend(self._scratch_leftovers(older_than, dry_run))
            if not dry_run:
                self._counters.forget()
        if not dry_run:
            after = {"removed": len(report.removed)}
            for record in records if datasets else ():
                note(self._tree.database, None, ACTION, record.name, None, after, record.slugs)
            if not datasets:
                note(self._tree.database, None, ACTION, "all", None, after)
        return report

    def _scratch_leftovers(self, older_than: float, dry_run: bool) -> Iterator[Leftover]:
        """Remove what is left of queries whose process died. Both on this machine, so its own clock will do."""
        if not dry_run:
            yield from (Leftover("", "scratch", str(path)) for path in remove_abandoned(self.scratch))
        for path in sorted(self.scratch.glob(_SPILLED)):
            try:
                status = path.stat()
                if time.time() - status.st_mtime < older_than:
                    continue
                if not dry_run:
                    # A query that still has it open keeps what it holds.
                    path.unlink()
            except FileNotFoundError:
                continue
            yield Leftover("", "scratch", str(path), status.st_size)
