"""The step of the write protocol that writes to the mirror, too. Whatever it fails by, the write stands."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from lakeward.clock import Faults
from lakeward.control.metrics import Metrics
from lakeward.control.records import ArmVersion
from lakeward.errors import ParityMismatch, Stopped
from lakeward.happenings import told
from lakeward.storage.arm import StorageArm
from lakeward.storage.job import Job, about_job
from lakeward.storage.mirroring import Mirroring
from lakeward.storage.table import TableRef

log = logging.getLogger("lakeward.protocol")

MIRROR_POINTS = ("mirror", "prepare:marked", "mirror:prepared")
"""What `Faults.at` is called with besides, where a write is mirrored. `prepare:marked` is of the Postgres arm."""


class MirrorStep:
    """Writes one output to the mirror of its dataset.

    Args:
        arms: by name.
        mirroring: replays and compares.
        faults: called at the points of the step.
        metrics: counts what does not get to a mirror.
    """

    def __init__(self, arms: Mapping[str, StorageArm], mirroring: Mirroring, faults: Faults, metrics: Metrics) -> None:
        self._metrics = metrics
        self._arms = arms
        self._mirroring = mirroring
        self._faults = faults

    @told("write.mirror", about_job)
    def run(self, job: Job, written: tuple[TableRef, ArmVersion], check: Callable[[], None]) -> None:
        """Prepare the version on the mirror, if that holds the one before; else, or if it fails, note why not.

        Args:
            job: prepared on its own arm; its transaction names the mirror.
            written: where it is prepared.
            check: raises if the lease is lost.
        """
        transaction, prepared = job.transaction, job.prepared
        mirror = transaction.mirror
        assert mirror is not None and prepared is not None, "there is something to mirror"
        held = mirror.newest.version if mirror.newest is not None else 0
        if held != transaction.parent_version:
            self._metrics.add("lakeward_mirror_missed_total", dataset=transaction.dataset_id, arm=mirror.arm)
            job.mirror_error = f"the {mirror.arm} arm was behind before: it holds version {held}"
            return
        try:
            self._faults.at("mirror")
            job.mirrored = self._mirroring.along(transaction, written, check, whole=prepared.rebases)
            self._faults.at("mirror:prepared")
        except Stopped:
            # It is the write that is to end, with the mirror as it was.
            self._remove(job, mirror.arm)
            raise
        except Exception as error:
            job.mirrored, job.mirror_error = None, f"{type(error).__name__}: {error}"
            job.mismatch = str(error) if isinstance(error, ParityMismatch) else None
            what = "mismatches" if job.mismatch is not None else "failures"
            self._metrics.add(f"lakeward_mirror_{what}_total", dataset=transaction.dataset_id, arm=mirror.arm)
            log.warning(
                "dataset %s: version %d does not get to its mirror, the %s arm: %s",
                transaction.dataset,
                transaction.version,
                mirror.arm,
                error,
            )
            self._remove(job, mirror.arm)

    def _remove(self, job: Job, arm: str) -> None:
        """Remove what the mirror has of it. What can't be removed now goes before the mirror is written again."""
        try:
            self._arms[arm].discard(job.table, job.transaction.version)
        except Exception as error:
            log.warning("dataset %s: what the %s arm has of it stays for now: %s", job.transaction.dataset, arm, error)
