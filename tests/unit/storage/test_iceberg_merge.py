"""Keyed writes on the Iceberg arm: which files they read, mark, write and leave alone, and what their snapshots say."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, LongType, StringType

import lakeward
from lakeward.control.records import ArmVersion, OpenTransaction
from lakeward.storage.arm import Prepared, Scan, WriteTask
from lakeward.storage.arms.iceberg import deletes, merge
from lakeward.storage.arms.iceberg.comparing import PIECE_ROWS, Part, parts_of
from lakeward.storage.arms.iceberg.scans import live_rows
from lakeward.storage.arms.iceberg.stores.local_store import local_path
from lakeward.storage.table import TableRef
from lakeward.types.logical import parse_type
from lakeward.types.schema import Column, Schema
from support.merge_subject import Subject
from unit.storage.test_position_deletes import POSITION_DELETES, delete_positions


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """A workspace for all tests of this module."""
    with lakeward.open(tmp_path_factory.mktemp("merge") / "home") as opened:
        yield opened


@pytest.fixture
def orders(shared: lakeward.Workspace) -> Subject:
    """Three data files of ten rows: 0-9, 100-109, 200-209."""
    return Subject(shared).fill(range(10), range(100, 110), range(200, 210))


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The number of data files that each keyed write has read keys of."""
    seen: list[int] = []

    def counted(table: Table, tasks: Any, *arguments: Any, **named: Any) -> Any:
        seen.append(len(tasks))
        return live_rows(table, tasks, *arguments, **named)

    monkeypatch.setattr(merge, "live_rows", counted)
    return seen


def test_rows_are_compared_in_parts_that_hold_each_of_them_once() -> None:
    pieces = [(0, 0, 5), (0, 2, 5), (1, 0, 5), (3, 1, 20), (3, 4, 1)]
    end, first, third = PIECE_ROWS - 1, 1 << deletes.FILE_SHIFT, 3 << deletes.FILE_SHIFT
    assert parts_of(pieces, 15) == [
        Part(0, first + end, [0, 1]),
        Part(third + PIECE_ROWS, third + PIECE_ROWS + end, [3]),
        Part(third + 4 * PIECE_ROWS, third + 4 * PIECE_ROWS + end, [3]),
    ]
    assert parts_of(pieces, 1000) == [Part(0, third + 4 * PIECE_ROWS + end, [0, 1, 3])]
    assert parts_of([], 1000) == []


# Files --------------------------------------------------------------------------------------------------------------


def test_only_files_are_read_that_can_hold_a_key(orders: Subject, reads: list[int]) -> None:
    orders.upsert(105)
    assert reads == [1]
    orders.upsert(3, 50, 209)
    assert reads == [1, 2]
    orders.upsert(*range(300, 330))
    assert reads == [1, 2], "no file can hold these keys"
    orders.held.write(orders.held.to_arrow(columns=["id", "note"]), "mirror")
    assert reads[2:] == [6], "a mirror looks at every row"
    orders.check()


def test_rows_that_stay_keep_their_file_and_their_version(orders: Subject) -> None:
    before = orders.files()
    result = orders.held.write([{"id": 4, "note": "n4"}, {"id": 5, "note": "new"}, {"id": 6, "note": "n6"}], "upsert")
    assert (result.rows_updated, result.rows_unchanged) == (1, 2)
    after = orders.files()
    assert before.items() - after.items() == {(path, value) for path, value in before.items() if "00000001-" in path}
    assert sorted(after.values()) == [(1, 0), (10, 0), (10, 0), (10, 1)]
    rows = {row["id"]: row for row in orders.check()}
    assert {number: row["__version"] for number, row in rows.items() if number < 10} == {
        **dict.fromkeys(range(10), 1),
        5: 4,
    }
    assert (rows[5]["__row_id"], rows[5]["__row_index"]) == (5, 5)
    assert rows[5]["__created_at"] == rows[4]["__created_at"]


def test_a_file_whose_rows_all_go_leaves_the_snapshot_with_its_delete_files(orders: Subject) -> None:
    orders.upsert(100, 101, note="first")
    orders.held.write([{"id": number} for number in (*range(100, 110), 3)], "delete")
    assert sorted(orders.files().values()) == [(10, 0), (10, 1)], "the file of 100 and 101 is gone, too"
    summary = orders.summary()
    assert summary["operation"] == "delete"
    assert summary["total-data-files"] == "2"
    assert summary["total-delete-files"] == "1"
    assert summary["total-position-deletes"] == "1"
    assert summary["removed-position-deletes"] == "2"
    assert [row["id"] for row in orders.check()] == [*range(3), *range(4, 10), *range(200, 210)]


def test_what_a_clean_and_a_marked_file_lose_is_not_mixed_up(orders: Subject) -> None:
    """The rows that one file has lost already must not count for another one."""
    orders.upsert(0, 1, 2, 3, 4, note="first")
    orders.held.write([{"id": number} for number in (0, 100, 101, 102, 103, 104)], "delete")
    orders.held.write([{"id": number} for number in (5, 105, 1)], "delete")
    left = {*range(2, 5), *range(6, 10), *range(106, 110), *range(200, 210)}
    assert {row["id"] for row in orders.check()} == left


def test_delete_files_are_as_the_spec_says(orders: Subject) -> None:
    orders.upsert(1, 7, 103)
    marks = [file for task in orders.table.scan().plan_files() for file in task.delete_files]
    assert [mark.content for mark in marks] == [DataFileContent.POSITION_DELETES] * 2
    for task in orders.table.scan().plan_files():
        for mark in task.delete_files:
            source = pq.ParquetFile(local_path(mark.file_path))
            fields = {field.name: field for field in source.schema_arrow}
            ids = {name: int(field.metadata[b"PARQUET:field_id"]) for name, field in fields.items()}
            assert ids == {"file_path": 2147483546, "pos": 2147483545}
            assert fields["pos"].type == pa.int64()
            assert source.schema.column(0).physical_type == "BYTE_ARRAY"
            rows = source.read()
            assert set(rows["file_path"].to_pylist()) == {task.file.file_path}
            assert rows["pos"].to_pylist() == ([3] if mark.record_count == 1 else [1, 7])
            assert mark.lower_bounds[2147483546] == mark.upper_bounds[2147483546] == task.file.file_path.encode()
            assert (mark.spec_id, mark.partition) == (task.file.spec_id, task.file.partition)
            assert mark.file_size_in_bytes == Path(local_path(mark.file_path)).stat().st_size


def test_another_engines_delete_file_for_several_data_files(shared: lakeward.Workspace) -> None:
    orders = Subject(shared).fill(range(10), range(100, 110))
    paths = sorted(orders.files())
    place = Path(orders.table.location().removeprefix("file://"))
    delete_positions(orders.table, place, paths[0], [2])
    delete_many(orders.table, place, {paths[0]: [0, 5], paths[1]: [0, 9], "file:///gone.parquet": [1]})
    adopted = orders.workspace.dataset(orders.held.created.name).adopt()
    assert adopted.row_count == 15
    result = orders.upsert(0, 1, 2, 3, 100, 101)
    assert (result.rows_added, result.rows_updated) == (3, 3)
    wanted = {0: "new", 1: "new", 2: "new", 3: "new", 100: "new", 101: "new"}
    wanted |= {number: f"n{number}" for number in (4, *range(6, 10), *range(102, 109))}
    assert {row["id"]: row["note"] for row in orders.check()} == wanted
    orders.held.write([{"id": number} for number in (4, *range(6, 10))], "delete")
    assert paths[0] not in orders.files()
    assert len(orders.check()) == len(wanted) - 5


def delete_many(table: Table, directory: Path, rows: dict[str, list[int]]) -> None:
    """Commit one delete file for several data files, as engines write that distribute by partition."""
    plain = [(path, position) for path, positions in sorted(rows.items()) for position in positions]
    real = pq.write_table

    def write(_: pa.Table, target: Path) -> None:
        paths, positions = zip(*plain, strict=True)
        real(pa.table([pa.array(paths), pa.array(positions, pa.int64())], schema=POSITION_DELETES), target)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pq, "write_table", write)
        delete_positions(table, directory, "unused", [position for _, position in plain])


# Snapshots ----------------------------------------------------------------------------------------------------------


def test_summaries_add_up(orders: Subject) -> None:
    orders.upsert(1, 2, 50, note="x")
    summary = orders.summary()
    assert summary["operation"] == "overwrite"
    assert summary["added-records"] == "3"
    assert summary["added-position-deletes"] == "2"
    assert summary["total-records"] == "33"
    assert summary["total-position-deletes"] == "2"
    orders.upsert(60, mode="append_new")
    assert orders.summary()["operation"] == "append"
    assert orders.summary()["total-records"] == "34"
    orders.held.write([{"id": 60}, {"id": 4}], "delete")
    summary = orders.summary()
    assert summary["operation"] == "delete"
    assert (summary["total-records"], summary["total-position-deletes"]) == ("33", "3")
    orders.check()


def test_manifests_stay_few_and_keep_sequence_numbers(shared: lakeward.Workspace) -> None:
    orders = Subject(shared).fill(range(200))
    with orders.table.transaction() as transaction:
        transaction.set_properties({"commit.manifest.min-count-to-merge": "5"})
    counts = []
    for number in range(12):
        orders.upsert(number, 1000 + number, note=f"v{number}")
        snapshot = orders.table.current_snapshot()
        assert snapshot is not None
        counts.append(len(snapshot.manifests(orders.table.io)))
    assert counts[:5] == [3, 5, 7, 5, 3], "of each kind, five become one"
    assert max(counts) == 7
    assert snapshot is not None
    manifests = snapshot.manifests(orders.table.io)
    assert {manifest.content for manifest in manifests} == {ManifestContent.DATA, ManifestContent.DELETES}
    entries = [each for manifest in manifests for each in manifest.fetch_manifest_entry(orders.table.io)]
    by_snapshot: dict[int | None, int | None] = {
        each.snapshot_id: each.sequence_number for each in orders.table.metadata.snapshots
    }
    assert all(entry.sequence_number == by_snapshot[entry.snapshot_id] for entry in entries)
    assert len(orders.check()) == 212


def test_files_are_deleted_if_the_write_fails_before_its_commit(
    orders: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> set[Path]:
        return set(Path(local_path(orders.table.location())).rglob("*.parquet"))

    before = files()

    def fail(*_: object) -> None:
        raise OSError("the disk is on fire")

    monkeypatch.setattr(deletes.DeleteWriter, "write", fail)
    with pytest.raises(OSError, match="on fire"):
        orders.upsert(1, 2, 300)
    assert files() == before
    monkeypatch.undo()
    assert orders.upsert(1, 2, 300).rows_updated == 2
    orders.check()


def test_what_another_engine_compacts_meanwhile_is_matched_anew(
    orders: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders.upsert(1, note="marked")
    write = merge.Merge._write
    ran: list[bool] = []

    def compact_first(self: merge.Merge, *arguments: Any) -> Any:
        change = write(self, *arguments)
        if not ran:
            ran.append(True)
            table = orders.table
            table.overwrite(table.scan().to_arrow())
        return change

    monkeypatch.setattr(merge.Merge, "_write", compact_first)
    result = orders.upsert(1, 105, 300, note="after")
    assert (result.rows_updated, result.rows_added) == (2, 1)
    notes = {row["id"]: row["note"] for row in orders.check()}
    assert [notes[number] for number in (1, 105, 300)] == ["after"] * 3
    assert len(notes) == 31


# Columns ------------------------------------------------------------------------------------------------------------


def test_u06_columns_that_were_added_renamed_and_promoted(shared: lakeward.Workspace) -> None:
    """By field id: files from before lack a column, have another name for one, and narrower types."""
    orders = Subject(shared, {"id": "int", "name": "string", "x": "float"})
    orders.held.write([{"id": number, "name": f"n{number}", "x": number / 2} for number in range(10)])
    with orders.table.update_schema() as update:
        update.update_column("id", LongType())
        update.update_column("x", DoubleType())
        update.rename_column("name", "title")
        update.add_column("p", StringType())
    added = orders.table.schema().find_field("p").field_id
    # A snapshot under these columns, as an engine makes that changes no row.
    orders.table.append(orders.table.scan().to_arrow().slice(0, 0))
    columns = (
        Column("x", parse_type("double"), 3),
        Column("p", parse_type("string"), added),
        Column("id", parse_type("long"), 1),
        Column("title", parse_type("string"), 2),
    )
    table = dataclasses.replace(orders.held.table, schema=Schema(columns, ("id",)))
    batch = pa.table(
        {
            "x": pa.array([1.0, 0.1, 0.5], pa.float64()),
            "p": [None, "p", None],
            "id": [2, 2**40, 1],
            "title": ["n2", "new", "other"],
        }
    )
    prepared = prepare(orders, table, "upsert", batch.to_reader())
    assert isinstance(prepared, Prepared)
    assert (prepared.counts.unchanged, prepared.counts.added, prepared.counts.updated) == (1, 1, 1)
    version = ArmVersion(2, 1, prepared.snapshot_id, None)
    found = orders.arm.scan(table, version, Scan(("id", "title", "x", "p"))).read_all().sort_by("id").to_pylist()
    assert found[:3] == [
        {"id": 0, "title": "n0", "x": 0.0, "p": None},
        {"id": 1, "title": "other", "x": 0.5, "p": None},
        {"id": 2, "title": "n2", "x": 1.0, "p": None},
    ]
    assert found[-1] == {"id": 2**40, "title": "new", "x": 0.1, "p": "p"}
    assert len(found) == 11


def prepare(orders: Subject, table: TableRef, verb: str, batches: pa.RecordBatchReader) -> Any:
    """Prepare a write under other columns than the control plane has, which knows of no change yet."""
    transaction = dataclasses.replace(
        take(orders), verb=verb, version=2, next_row_id=10, next_row_index=10, parent_row_count=10, parent_digest=None
    )
    parent = ArmVersion(1, 1, orders.head, None)
    return orders.arm.prepare(WriteTask(table, transaction, parent, lambda: None, lambda _: transaction), batches)


def take(orders: Subject) -> OpenTransaction:
    """Return the transaction of a write that did nothing."""
    seen: list[OpenTransaction] = []
    arm, real = orders.arm, orders.arm.prepare

    def stop(task: WriteTask, batches: pa.RecordBatchReader) -> Any:
        seen.append(task.transaction)
        raise RuntimeError("seen")

    arm.prepare = stop  # type: ignore[method-assign]
    try:
        with pytest.raises(RuntimeError, match="seen"):
            orders.held.write([{"id": 1, "name": "n", "x": 1.0}], "upsert")
    finally:
        arm.prepare = real  # type: ignore[method-assign]
    return seen[0]
