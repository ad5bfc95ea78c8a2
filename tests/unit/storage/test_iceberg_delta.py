"""What two Iceberg snapshots differ by is read from the files that they differ by, and from no others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.table import Table

import lakeward
from lakeward.control.records import ArmVersion
from lakeward.storage.arm import Scan
from lakeward.storage.arms.iceberg import IcebergArm
from lakeward.storage.arms.iceberg.delta import FileSide, differing
from lakeward.storage.arms.iceberg.scans import plan
from lakeward.storage.changes import Wanted, compared
from lakeward.storage.table import TableRef, table_ref
from unit.storage.test_position_deletes import delete_positions

COLUMNS = {"id": "long", "note": "string"}


class Subject:
    """A dataset of three appends, of ten rows each, so of three data files."""

    def __init__(self, workspace: lakeward.Workspace, directory: Path) -> None:
        self.dataset = workspace.create_dataset("main.sales.orders", COLUMNS, arm="iceberg")
        self._directory = directory
        self._duck = workspace.storage._duck
        arm = workspace.storage.routing.arm("iceberg")
        assert isinstance(arm, IcebergArm)
        self._arm = arm
        self.snapshots = [self._append(start) for start in (0, 10, 20)]
        self.paths = [self._new_path(number) for number in range(3)]

    @property
    def ref(self) -> TableRef:
        return table_ref(self.dataset.record)

    @property
    def table(self) -> Table:
        return self._arm._tables.load(self.ref)

    def _append(self, start: int) -> int:
        self.dataset.write([{"id": number, "note": f"n{number}"} for number in range(start, start + 10)])
        return self.table.current_snapshot().snapshot_id

    def _new_path(self, number: int) -> str:
        def files(count: int) -> set[str]:
            snapshot = self.snapshots[count]
            return {task.file.file_path for task in self.table.scan(snapshot_id=snapshot).plan_files()}

        (path,) = files(number) - (files(number - 1) if number else set())
        return path

    def delete(self, file: int, *positions: int) -> int:
        return delete_positions(self.table, self._directory, self.paths[file], list(positions))

    def rewrite(self) -> int:
        """Compact, as an engine does: the same rows, in one file."""
        table = self.table
        table.overwrite(table.scan().to_arrow())
        return table.refresh().current_snapshot().snapshot_id

    def sides(self, old: int, new: int) -> tuple[FileSide, FileSide]:
        return differing(self.table, self.ref.schema, old, new)

    def changes(self, old: int, new: int) -> list[tuple[str, int]]:
        sides = self._arm.changes(self.ref, ArmVersion(1, 1, old, None), ArmVersion(2, 1, new, None))
        found: pa.Table = compared(self._duck, self.ref, sides, Wanted(("id",)), lambda: None).read_all()
        return sorted((row["__op"], row["id"]) for row in found.to_pylist())


@pytest.fixture
def subject(workspace: lakeward.Workspace, tmp_path: Path) -> Subject:
    return Subject(workspace, tmp_path)


def read(*sides: FileSide) -> list[list[str]]:
    return [sorted(side.files) for side in sides]


def test_only_files_that_were_added_are_read(subject: Subject) -> None:
    first, second, third = subject.snapshots
    files = list(subject.paths)
    assert read(*subject.sides(first, third)) == [[], sorted(files[1:])]
    assert read(*subject.sides(second, third)) == [[], files[2:]]
    assert read(*subject.sides(third, third)) == [[], []]
    assert subject.changes(second, third) == [("insert", number) for number in range(20, 30)]
    # And the other way round, as after a restore.
    assert subject.changes(third, second) == [("delete", number) for number in range(20, 30)]


def test_of_files_that_both_have_only_rows_are_read_that_one_has_deleted(subject: Subject) -> None:
    deleted = [subject.snapshots[-1]]
    for file, *positions in ((0, 3, 4), (2, 0), (0, 4, 9)):
        deleted.append(subject.delete(file, *positions))
    files = list(subject.paths)
    assert read(*subject.sides(deleted[0], deleted[1])) == [[files[0]], []]
    assert read(*subject.sides(deleted[1], deleted[2])) == [[files[2]], []]
    assert read(*subject.sides(deleted[0], deleted[3])) == [sorted([files[0], files[2]]), []]
    assert subject.changes(deleted[0], deleted[1]) == [("delete", 3), ("delete", 4)]
    assert subject.changes(deleted[1], deleted[3]) == [("delete", 9), ("delete", 20)], "4 was deleted before"
    assert subject.changes(deleted[0], deleted[3]) == [("delete", number) for number in (3, 4, 9, 20)]
    assert subject.changes(deleted[3], deleted[1]) == [("insert", 9), ("insert", 20)]
    # A file that is there with deleted rows, and was not before.
    assert subject.changes(subject.snapshots[1], deleted[3]) == [
        *(("delete", number) for number in (3, 4, 9)),
        *(("insert", number) for number in range(21, 30)),
    ]


def test_a_compaction_between_changes_nothing_and_hides_nothing(subject: Subject) -> None:
    old = subject.snapshots[-1]
    deleted = subject.delete(1, 5)
    compacted = subject.rewrite()
    assert subject.changes(deleted, compacted) == []
    assert subject.changes(old, compacted) == [("delete", 15)]
    assert subject.changes(subject.snapshots[0], compacted) == [
        ("insert", number) for number in range(10, 30) if number != 15
    ]
    assert subject.changes(compacted, old) == [("insert", 15)]


def test_columns_are_read_from_files_that_have_changed_rows_only(subject: Subject) -> None:
    """After a compaction all ids are compared, but the rest is read where something has changed."""
    old = subject.delete(1, 5)
    compacted = subject.rewrite()
    side, _ = subject.sides(old, compacted)
    assert len(side.files) == 3
    relation: Any = side.rows(["note", "__row_id"], [1])
    assert relation.sql.count(".parquet") == 1
    assert side.rows(["note"], []).sql.count(".parquet") == 0


def test_since_leaves_out_files_by_their_bounds(subject: Subject) -> None:

    for since, files in ((0, 3), (1, 2), (2, 1)):
        planned = plan(subject.table, subject.snapshots[-1], subject.ref.schema, {"id"}, Scan(("id",), since=since))
        assert planned is not None and len(planned.tasks) == files
        assert planned.sql.count(".parquet") == files
    assert plan(subject.table, subject.snapshots[-1], subject.ref.schema, {"id"}, Scan(("id",), since=3)) is None
