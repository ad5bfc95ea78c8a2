"""A dataset on the Iceberg arm as the tests of keyed writes look at it: its files, its snapshots, its rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pyiceberg.table import Table

import lakeward
from lakeward import WriteResult
from lakeward.storage.arms.iceberg import IcebergArm
from support.arms import ArmUnderTest
from support.keyed import assert_digest_kept
from support.outside import main_by_duckdb, main_by_pyiceberg

COLUMNS = {"id": "long", "note": "string"}


class Subject:
    """A dataset on the Iceberg arm, and its table."""

    def __init__(
        self, workspace: lakeward.Workspace, columns: dict[str, str] | None = None, key: Sequence[str] = ("id",)
    ) -> None:
        self.workspace = workspace
        self.held = ArmUnderTest(workspace, "iceberg").create(columns or COLUMNS, key)
        arm = workspace.storage.routing.arm("iceberg")
        assert isinstance(arm, IcebergArm)
        self.arm = arm

    @property
    def table(self) -> Table:
        return self.arm._tables.load(self.held.table)

    @property
    def head(self) -> int:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None
        return snapshot.snapshot_id

    def fill(self, *parts: range) -> Subject:
        """Write one data file for each part; the digest is known from then on."""
        for part in parts:
            self.held.write([{"id": number, "note": f"n{number}"} for number in part])
        self.workspace.storage.verify(self.held.record)
        return self

    def upsert(self, *ids: int, note: str = "new", mode: str = "upsert") -> WriteResult:
        return self.held.write([{"id": number, "note": note} for number in ids], mode)

    def summary(self) -> dict[str, str]:
        snapshot = self.table.current_snapshot()
        assert snapshot is not None and snapshot.summary is not None
        return {"operation": snapshot.summary.operation.value, **snapshot.summary.additional_properties}

    def files(self) -> dict[str, tuple[int, int]]:
        """Return the number of rows and of delete files of each data file, by its path."""
        tasks = self.table.scan().plan_files()
        return {task.file.file_path: (task.file.record_count, len(task.delete_files)) for task in tasks}

    def check(self) -> list[dict[str, Any]]:
        """Compare what others read, and the digest that was kept along with that of the rows; return the rows."""
        ours = self.held.rows(identity=True)
        assert repr(main_by_pyiceberg(self.table).to_pylist()) == repr(ours)
        # A UUID comes from DuckDB as its text.
        assert _uuids_as_text(main_by_duckdb(self.table).to_pylist()) == _uuids_as_text(ours)
        assert_digest_kept(self.held, known=True)
        return ours


def _uuids_as_text(rows: list[dict[str, Any]]) -> str:
    return re.sub(r"UUID\(('.{36}')\)", r"\1", repr(rows))
