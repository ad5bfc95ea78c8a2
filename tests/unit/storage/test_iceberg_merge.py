"""Keyed writes on the Iceberg arm: which files they read, mark, write and leave alone, and what their snapshots say."""

from __future__ import annotations

import dataclasses
import datetime as dt
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyiceberg.manifest import DataFileContent, ManifestContent
from pyiceberg.table import Table
from pyiceberg.types import DoubleType, LongType, StringType

import lakeward
from lakeward import WriteResult
from lakeward.control.records import ArmVersion, OpenTransaction
from lakeward.errors import DuplicateKey
from lakeward.storage.arm import Prepared, Scan, WriteTask
from lakeward.storage.arms.iceberg import IcebergArm, deletes, merge
from lakeward.storage.arms.iceberg.deletes import local_path
from lakeward.storage.arms.iceberg.scans import live_rows
from lakeward.storage.table import TableRef
from lakeward.types.logical import parse_type
from lakeward.types.schema import Column, Schema
from support.arms import ArmUnderTest
from support.keyed import assert_digest_kept
from support.outside import main_by_duckdb, main_by_pyiceberg
from unit.storage.test_position_deletes import POSITION_DELETES, delete_positions

COLUMNS = {"id": "long", "note": "string"}


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """A workspace for all tests of this module."""
    with lakeward.open(tmp_path_factory.mktemp("merge") / "home") as opened:
        yield opened


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
        assert repr(main_by_duckdb(self.table).to_pylist()) == re.sub(r"UUID\(('.{36}')\)", r"\1", repr(ours))
        assert_digest_kept(self.held, known=True)
        return ours


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


def test_another_engines_delete_file_for_several_data_files(shared: lakeward.Workspace, tmp_path: Path) -> None:
    orders = Subject(shared).fill(range(10), range(100, 110))
    paths = sorted(orders.files())
    delete_positions(orders.table, tmp_path, paths[0], [2])
    delete_many(orders.table, tmp_path, {paths[0]: [0, 5], paths[1]: [0, 9], "file:///gone.parquet": [1]})
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


# Keys ---------------------------------------------------------------------------------------------------------------

_DAY = dt.date(1969, 12, 1)
KEYS: dict[str, Callable[[int], Any]] = {
    "int": lambda n: n - 50,
    "long": lambda n: (n - 50) * 2**40,
    "string": lambda n: "a long beginning that is all the same " + "äö日\U0001f600"[n % 4] * (n % 3) + f"{n:05d}",
    "decimal(20, 3)": lambda n: Decimal(n - 50) / 1000,
    "uuid": lambda n: uuid.UUID(int=(n * 0x9E3779B97F4A7C15F39CC0605CEDC834) % 2**128),
    "date": lambda n: _DAY + dt.timedelta(days=n),
    "time": lambda n: dt.time(n // 60, n % 60, 1, n),
    "timestamp": lambda n: dt.datetime(1969, 12, 31, 23) + dt.timedelta(minutes=n, microseconds=n),
    "timestamptz": lambda n: dt.datetime(1969, 12, 31, 23, tzinfo=dt.UTC) + dt.timedelta(minutes=n, microseconds=n),
    "binary": lambda n: b"\xff" * 20 + bytes([n, 0, 255 - n]),
}


@pytest.mark.parametrize("kind", KEYS)
def test_keys_of_every_type_are_found_and_pruned(shared: lakeward.Workspace, kind: str) -> None:
    key = KEYS[kind]
    orders = Subject(shared, {"id": kind, "n": "long"})
    ordered = sorted(key(number) for number in range(120))
    for part in range(0, 120, 40):
        orders.held.write([{"id": value, "n": 0} for value in ordered[part : part + 40]])
    orders.workspace.storage.verify(orders.held.record)
    changed = [ordered[0], ordered[39], ordered[40], ordered[119], key(200)]
    result = orders.held.write([{"id": value, "n": 1} for value in reversed(changed)], "upsert")
    assert (result.rows_updated, result.rows_added) == (4, 1)
    assert {row["id"] for row in orders.check() if row["n"]} == set(changed)
    assert orders.held.write([{"id": value} for value in changed], "delete").rows_deleted == 5
    orders.check()


@pytest.mark.parametrize("kind", sorted(set(KEYS) - {"string", "binary", "uuid"}))
def test_bounds_of_every_type_prune(shared: lakeward.Workspace, kind: str, reads: list[int]) -> None:
    key = KEYS[kind]
    orders = Subject(shared, {"id": kind, "n": "long"})
    for part in range(0, 120, 40):
        orders.held.write([{"id": key(number), "n": 0} for number in range(part, part + 40)])
    orders.held.write([{"id": key(50), "n": 1}, {"id": key(70), "n": 1}], "upsert")
    assert reads == [1]


def test_a_boolean_key_and_a_key_of_two_columns(shared: lakeward.Workspace, reads: list[int]) -> None:
    orders = Subject(shared, {"n": "long", "flag": "boolean", "id": "string"}, ("flag", "id"))
    for flag in (False, True):
        orders.held.write([{"id": f"k{number}", "flag": flag, "n": 0} for number in range(10)])
    orders.workspace.storage.verify(orders.held.record)
    result = orders.held.write(pa.table({"id": ["k3", "k99"], "flag": [True, True], "n": [1, 1]}), "upsert")
    assert (result.rows_updated, result.rows_added, reads) == (1, 1, [1])
    assert [(row["flag"], row["id"]) for row in orders.check() if row["n"]] == [(True, "k3"), (True, "k99")]


@pytest.mark.parametrize("size", [500, 1_000, 1_500, 5_000, 20_000])
def test_u01_composite_keys(shared: lakeward.Workspace, size: int) -> None:
    def rows(value: int) -> pa.Table:
        numbers = pa.array(range(size), pa.int32())
        return pa.table({"b": pc.cast(numbers, pa.string()), "a": pc.cast(numbers, pa.int32()), "v": [value] * size})

    orders = Subject(shared, {"a": "int", "b": "string", "v": "long"}, ("a", "b"))
    orders.held.write(rows(0).select(["a", "b", "v"]))
    orders.workspace.storage.verify(orders.held.record)
    snapshots = len(orders.table.metadata.snapshots)
    result = orders.held.write(rows(1), "upsert")
    assert (result.rows_updated, result.row_count) == (size, size)
    assert len(orders.table.metadata.snapshots) == snapshots + 1
    assert orders.summary()["total-data-files"] == "1", "all rows of the first file went"
    orders.check()
    assert not orders.held.write(rows(1), "upsert").committed


def test_two_million_keys_in_one_batch(shared: lakeward.Workspace) -> None:
    count = 2_000_000
    orders = Subject(shared, {"id": "long", "v": "int"})
    numbers = pa.array(range(count), pa.int64())
    orders.held.write(
        pa.table({"id": pc.multiply(numbers.slice(0, 1_000_000), 2), "v": pa.nulls(1_000_000, pa.int32())})
    )
    result = orders.held.write(
        pa.table({"id": numbers, "v": pc.cast(pc.bit_wise_and(numbers, 7), pa.int32())}), "upsert"
    )
    assert (result.rows_updated, result.rows_added, result.row_count) == (1_000_000, 1_000_000, count)
    table = orders.table.scan(selected_fields=("id", "v")).to_arrow()
    assert pc.count_distinct(table["id"]).as_py() == table.num_rows == count
    assert pc.all(pc.equal(pc.bit_wise_and(table["id"], 7), table["v"])).as_py()


def test_a_key_that_the_dataset_has_twice(orders: Subject) -> None:
    orders.held.write([{"id": 3, "note": "again"}])
    with pytest.raises(DuplicateKey) as caught:
        orders.upsert(3, 4)
    assert caught.value.fields["where"] == "dataset"
    assert orders.table.metadata.refs.keys() == {"main"}
    assert orders.upsert(4).rows_updated == 1, "others can be written"


# Values -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("known", [True, False])
def test_u05_what_differs(shared: lakeward.Workspace, known: bool) -> None:
    """With the parent's digest known all columns are read at once; else a few first, then the others."""
    nan = float("nan")
    columns = {
        "k": "int",
        "v": "double",
        "w": "double",
        "s": "struct<x: int, d: double>",
        "l": "list<double>",
        "t": "string",
    }
    orders = Subject(shared, columns, ("k",))
    empty: dict[str, Any] = {"v": None, "w": None, "s": None, "l": None, "t": None}
    old = [
        {**empty, "k": 1, "s": {"x": None, "d": None}},
        {**empty, "k": 2, "v": nan, "l": []},
        {**empty, "k": 3, "s": {"x": None, "d": nan}, "l": [nan, None, 0.0]},
        {**empty, "k": 4, "l": []},
        {**empty, "k": 5, "v": 0.0, "t": ""},
        {**empty, "k": 6, "s": {"x": 1, "d": -0.0}},
        {**empty, "k": 7},
    ]
    orders.held.write(old)
    if known:
        orders.workspace.storage.verify(orders.held.record)
    new = [
        {**old[0], "s": None},
        {**old[1]},
        {**old[2], "l": [nan, None, -0.0]},
        {**old[3], "l": None},
        {**old[4], "v": -0.0, "t": ""},
        {**old[5], "s": {"x": 1, "d": 0.0}},
        {**old[6], "l": [None]},
    ]
    result = orders.held.write(new, "upsert")
    assert (result.rows_updated, result.rows_unchanged) == (3, 4)
    rows = {row["k"]: row for row in orders.held.rows(identity=True)}
    assert {number for number, row in rows.items() if row["__version"] == 2} == {1, 4, 7}
    assert (rows[1]["s"], rows[4]["l"], rows[7]["l"]) == (None, None, [None])
    if known:
        assert_digest_kept(orders.held, known=True)


def test_rows_that_differ_only_where_is_read_last(shared: lakeward.Workspace) -> None:
    orders = Subject(shared, {"id": "long", "small": "boolean", "wide": "string", "more": "list<string>"})
    rows: list[dict[str, Any]] = [
        {"id": n, "small": True, "wide": f"{n * 7919 % 1000:050d}", "more": [str(n)]} for n in range(1000)
    ]
    orders.held.write(rows)
    rows[10]["wide"] += "!"
    rows[20]["more"] = []
    rows[30]["small"] = None
    result = orders.held.write(rows, "upsert")
    assert (result.rows_updated, result.rows_unchanged) == (3, 997)
    assert orders.held.rows() == rows


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
