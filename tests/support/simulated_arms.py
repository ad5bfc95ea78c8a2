"""Arms in memory that several simulated actors share, each through steps of its own, like the two that are real.

`SimulatedRows` is fenced as the Postgres arm is: what it writes, it writes in a transaction that holds its ledger row.
`SimulatedTable` is like the Iceberg arm: anybody can prepare a branch, and `main` moves by compare-and-swap.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pyarrow as pa

from lakeward.clock import NoFaults
from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion
from lakeward.errors import Diverged
from lakeward.storage.arm import ArmContext, Prepared, Scan, StorageArm, WriteTask
from lakeward.storage.duck import Duck
from lakeward.storage.settings import StorageSettings
from lakeward.storage.table import TableRef
from lakeward.testing import InMemoryArm
from lakeward.testing.cooperative import Actor
from lakeward.types.digest import Digest


def memory_arm() -> InMemoryArm:
    """Return an arm in memory that needs no workspace."""
    nothing = cast(Any, None)
    settings = StorageSettings(warehouse=Path(), scratch=Path())
    return InMemoryArm(ArmContext(nothing, nothing, settings, Duck(settings), nothing, NoFaults()))


@dataclass
class Store:
    """What all actors share of one arm: its rows, and where `main` of each dataset is (0: the empty root)."""

    arm: InMemoryArm = field(default_factory=memory_arm)
    main: dict[int, int] = field(default_factory=dict)


class SimulatedArm(StorageArm):
    """What both have in common."""

    def __init__(self, actor: Actor, database: Database, store: Store) -> None:
        self._actor = actor
        self._database = database
        self._store = store

    def scan(self, table: TableRef, version: ArmVersion, scan: Scan) -> pa.RecordBatchReader:
        self._actor.stop_at("arm:scan")
        return self._store.arm.scan(table, version, scan)

    def digest(self, table: TableRef, version: ArmVersion) -> Digest:
        return self._store.arm.digest(table, version)

    def locate(self, table: TableRef, version: ArmVersion) -> dict[str, str]:
        return self._store.arm.locate(table, version)

    def publish(self, table: TableRef, version: ArmVersion) -> None:
        pass

    def discard(self, table: TableRef, version: int) -> None:
        self._actor.stop_at("arm:discard")
        self._store.arm.discard(table, version)


class SimulatedRows(SimulatedArm):
    """Publishes nothing; its writes are fenced by the ledger."""

    name = "postgres"

    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared:
        with self._database.driver() as connection, connection.transaction():
            Ledger.hold(connection, task.transaction)
            return self._store.arm.prepare(task, batches)


class SimulatedTable(SimulatedArm):
    """Its branches are not fenced; what is prepared has to be published."""

    name = "iceberg"

    def prepare(self, task: WriteTask, batches: pa.RecordBatchReader) -> Prepared:
        self._actor.stop_at("prepare:files")
        prepared = self._store.arm.prepare(task, batches)
        parent = task.parent.snapshot_id if task.parent is not None else 0
        self._actor.stop_at("prepare:committed")
        return replace(prepared, publishes=True, parent_snapshot_id=parent)

    def publish(self, table: TableRef, version: ArmVersion) -> None:
        self._actor.stop_at("publish:look")
        main = self._store.main
        seen = main.get(table.dataset_id, 0)
        if seen == version.snapshot_id:
            return
        assert version.snapshot_id is not None
        if seen == version.parent_snapshot_id:
            self._actor.stop_at("publish:move")
            # The catalog compares with what was looked at; whoever lost looks again.
            if main.get(table.dataset_id, 0) == seen:
                main[table.dataset_id] = version.snapshot_id
                return
        if main.get(table.dataset_id, 0) != version.snapshot_id and seen < version.snapshot_id:
            raise Diverged(f"main of {table.name} is at {seen}, version {version.version} starts elsewhere")
