"""When data files are rewritten: for whoever asks, and after writes, by policy. Each is a transaction of its own kind.

A compaction goes through the protocol like a write, changes no row, and so every arm that holds the version before it
holds it, too. What it replaces goes as everything else goes: when no readable version needs it any more.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from lakeward.control.ledger import Ledger
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LockTimeout
from lakeward.storage.arm import StorageArm
from lakeward.storage.leftovers import Gathered, Rewriting
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.requests import Output
from lakeward.storage.settings import CompactionPolicy
from lakeward.storage.table import table_ref
from lakeward.types.table import arrow_schema

KIND = "compact"
"""The transactions' kind, and their verb."""

ASKED, AFTER_A_WRITE = "maintain", "storage.compaction"
"""The writers that the ledger names."""

MOST_PATIENCE = 6
"""What has failed so often, or more often, is tried again after 2 to this power times the files."""

log = logging.getLogger("lakeward.maintenance")


@dataclass(frozen=True)
class CompactionMode:
    """When it is done.

    Args:
        asked: when somebody asks.
        automatic: after writes.
    """

    asked: bool = True
    automatic: bool = True


class Compaction:
    """Rewrites data files of datasets.

    Args:
        tree: names and what they stand for.
        ledger: says which arm holds the head.
        arms: by name.
        patient: waits for a dataset that is being written.
        hasty: gives up at once if somebody writes, or waits to.
        policy: which files.
        mode: when.
    """

    def __init__(
        self,
        tree: Tree,
        ledger: Ledger,
        arms: Mapping[str, StorageArm],
        *,
        patient: WriteProtocol,
        hasty: WriteProtocol,
        policy: CompactionPolicy,
        mode: CompactionMode,
    ) -> None:
        self._tree = tree
        self._ledger = ledger
        self._arms = arms
        self._patient = patient
        self._hasty = hasty
        self._policy = policy
        self._mode = mode
        self._looked: dict[tuple[int, str], Gathered] = {}
        self._failed: dict[tuple[int, str], int] = {}

    def asked(self, dataset_id: int, *, dry_run: bool = False) -> Iterator[Rewriting]:
        """Rewrite what is worth it of a dataset, and yield what was rewritten; in a dry run, what would be.

        Raises:
            ConflictError: the dataset is being written for too long.
            StorageError: it can't be done; nothing was changed.
        """
        if not self._mode.asked:
            return
        record = self._tree.by_id(dataset_id)
        for arm in self._arms.values():
            found = self._on_arm(record, arm, self._policy.thorough(), None if dry_run else self._patient, ASKED)
            if found is not None:
                yield found

    def after_writes(self, datasets: Iterable[DatasetRecord]) -> None:
        """Rewrite files of datasets that were just written, if so many came that a look is worth it. Never fails.

        The first look costs nothing: each arm remembers how many files it has published.
        """
        if not self._mode.automatic:
            return
        for dataset in datasets:
            for arm in self._arms.values():
                if self._due(dataset.id, arm):
                    self._after_write(dataset, arm)

    def _due(self, dataset_id: int, arm: StorageArm) -> bool:
        now = arm.gathered(dataset_id)
        if now is None:
            return False
        before = self._looked.get((dataset_id, arm.name), Gathered(0, 0))
        # Fewer than before: a write has replaced them.
        before = Gathered(min(before.data_files, now.data_files), min(before.delete_files, now.delete_files))
        self._looked[dataset_id, arm.name] = before
        # What fails again and again must not make every write slow: it is tried after twice as many files each time.
        patience = 1 << min(self._failed.get((dataset_id, arm.name), 0), MOST_PATIENCE)
        many = now.data_files - before.data_files >= self._policy.small_files * patience
        return many or now.delete_files - before.delete_files >= self._policy.delete_files * patience

    def _after_write(self, dataset: DatasetRecord, arm: StorageArm) -> None:
        try:
            self._on_arm(self._tree.by_id(dataset.id), arm, self._policy, self._hasty, AFTER_A_WRITE)
            self._failed.pop((dataset.id, arm.name), None)
        except LockTimeout:
            log.info("dataset %s is not compacted now: somebody writes to it, or waits to", dataset.name)
        except Exception as error:
            # Whatever it is: the write stands, and its caller must not be told that it failed.
            log.warning("dataset %s was written, but not compacted: %s: %s", dataset.name, type(error).__name__, error)
            self._failed[dataset.id, arm.name] = self._failed.get((dataset.id, arm.name), 0) + 1
        now = arm.gathered(dataset.id)
        assert now is not None, "it was due"
        self._looked[dataset.id, arm.name] = now

    def _on_arm(
        self,
        record: DatasetRecord,
        arm: StorageArm,
        policy: CompactionPolicy,
        protocol: WriteProtocol | None,
        writer: str,
    ) -> Rewriting | None:
        """Rewrite what the arm has of the head; None: nothing. Without a protocol, say what would be rewritten."""
        held = self._ledger.arm_version(record.id, arm.name)
        if record.status == "diverged" or held is None:
            return None
        # Before a version is taken: where there is nothing to do, nothing is left of it in the ledger.
        found = arm.compactable(table_ref(record), held, policy)
        if found is None or protocol is None:
            return found

        def nothing() -> pa.RecordBatchReader:
            return pa.RecordBatchReader.from_batches(arrow_schema(record.schema), iter(()))

        output = Output(record, KIND, nothing, policy=policy)
        (done,) = protocol.run([output], writer=writer, kind=KIND, arm=arm.name).transactions
        held = self._ledger.arm_version(record.id, arm.name, done.version) if done.committed else None
        return arm.compacted(table_ref(record), held) if held is not None else None
