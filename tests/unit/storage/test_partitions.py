"""Partitioned Iceberg tables: what other engines and ours read of them after writes of every kind."""

from __future__ import annotations

import datetime
import itertools
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table
from pyiceberg.transforms import BucketTransform, IdentityTransform, UnknownTransform
from pyiceberg.types import LongType

import lakeward
from lakeward.errors import DataError, NameTaken, SchemaError
from lakeward.storage.arms.iceberg import files
from lakeward.storage.arms.iceberg.stores.local_store import local_path
from lakeward.types.partitioning import TRANSFORMS, WITH_NUMBER
from support.other_engine import OtherEngine

COLUMNS = {"id": "long", "ts": "timestamp", "region": "string", "n": "long"}
ODD = ["EU", "", None, "a/b=c d", "%2F", "..", "naïve", "e\u0301", "x" * 300, "null", "日本"]
SPECS = [
    ["region"],
    ["bucket(4, id)"],
    ["day(ts)"],
    ["truncate(2, region)", "bucket(3, id)", "month(ts)"],
    ["hour(ts)", "truncate(10, id)", "bucket(2, region)"],
    ["year(ts)", "n"],
]
_numbers = itertools.count(1)


def _rows(ids: range, salt: int = 0) -> list[dict[str, Any]]:
    start = datetime.datetime(1969, 12, 30, 22)
    return [
        {
            "id": number,
            "ts": None if number % 7 == 3 else start + datetime.timedelta(hours=5 * (number + salt)),
            "region": ODD[(number + salt) % len(ODD)],
            "n": (number + salt) % 3,
        }
        for number in ids
    ]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    with lakeward.open(tmp_path_factory.mktemp("partitions") / "home") as opened:
        yield opened


def made(workspace: lakeward.Workspace, partition_by: list[str], arm: str = "iceberg") -> lakeward.Dataset:
    name = f"main.parts.d{next(_numbers)}"
    return workspace.create_dataset(name, COLUMNS, ["id"], arm=arm, partition_by=partition_by)


def assert_rows(workspace: lakeward.Workspace, dataset: lakeward.Dataset, wanted: list[dict[str, Any]]) -> Table:
    """Ours, PyIceberg and DuckDB see these rows, and every file, delete files too, is in the partition of its rows."""
    ordered = sorted(wanted, key=lambda row: row["id"])
    assert dataset.to_arrow().sort_by("id").to_pylist() == ordered
    dataset.verify()
    table = OtherEngine(workspace, dataset).table
    names = list(COLUMNS)
    assert table.scan(selected_fields=tuple(names)).to_arrow().sort_by("id").select(names).to_pylist() == ordered
    assert _by_duckdb(table) == [row["id"] for row in ordered]
    for task in table.scan().plan_files():
        inside = pq.ParquetFile(local_path(task.file.file_path)).read()
        for field, value in zip(table.specs()[task.file.spec_id].fields, task.file.partition, strict=True):
            source = table.schema().find_field(field.source_id)
            one = field.transform.transform(source.field_type)
            assert {one(each) for each in inside[source.name].to_pylist()} == {value}
        for deletes in task.delete_files:
            assert (deletes.spec_id, deletes.partition) == (task.file.spec_id, task.file.partition)
    return table


def _by_duckdb(table: Table) -> list[int]:
    """Read files and position deletes as the manifests name them, with nothing of ours."""
    tasks = list(table.scan().plan_files())
    files = [local_path(task.file.file_path) for task in tasks]
    deletes = [local_path(file.file_path) for task in tasks for file in task.delete_files]
    gone = "(SELECT '' AS file_path, 0 AS pos WHERE false)"
    if deletes:
        gone = f"read_parquet({deletes!r}, hive_partitioning = false)"
    sql = (
        f"SELECT id FROM read_parquet({files!r}, filename = true, file_row_number = true, hive_partitioning = false) "
        f"AS t ANTI JOIN {gone} AS d ON d.file_path = 'file://' || t.filename AND d.pos = t.file_row_number ORDER BY id"
    )
    return [number for (number,) in duckdb.sql(sql).fetchall()]


@pytest.mark.parametrize("partition_by", SPECS, ids=str)
def test_every_engine_reads_what_every_verb_wrote(workspace: lakeward.Workspace, partition_by: list[str]) -> None:
    dataset = made(workspace, partition_by)
    dataset.write(_rows(range(40)))
    table = assert_rows(workspace, dataset, _rows(range(40)))
    assert len(table.spec().fields) == len(partition_by)
    dataset.write(_rows(range(40, 60)))
    # Most of them move to another partition.
    result = dataset.write(_rows(range(30, 70), salt=1), mode="upsert")
    assert (result.rows_updated, result.rows_added) == (30, 10)
    now = {row["id"]: row for row in [*_rows(range(60)), *_rows(range(30, 70), salt=1)]}
    assert_rows(workspace, dataset, list(now.values()))
    dataset.write([{"id": number} for number in range(0, 70, 2)], mode="delete")
    assert_rows(workspace, dataset, [row for row in now.values() if row["id"] % 2])
    dataset.write(_rows(range(20, 40), salt=2), mode="mirror")
    assert_rows(workspace, dataset, _rows(range(20, 40), salt=2))
    dataset.write(_rows(range(5)), mode="replace")
    assert_rows(workspace, dataset, _rows(range(5)))


@pytest.mark.parametrize("type_", ["boolean", "int", "decimal(38,6)", "binary", "uuid", "date", "time", "timestamptz"])
def test_every_type_divides_by_itself_and_by_its_transforms(workspace: lakeward.Workspace, type_: str) -> None:
    kind = type_.partition("(")[0]
    values = VALUES[kind]
    rows = [{"id": number, "v": values[number % len(values)]} for number in range(3 * len(values))]
    for transform in (name for name, kinds in TRANSFORMS.items() if kind in kinds):
        text = "v" if transform == "identity" else f"{transform}({'3, ' if transform in WITH_NUMBER else ''}v)"
        name = f"main.parts.d{next(_numbers)}"
        dataset = workspace.create_dataset(name, {"id": "long", "v": type_}, ["id"], "iceberg", [text])
        dataset.write(rows)
        dataset.write([{**rows[0], "v": values[1]}], mode="upsert")
        assert dataset.to_arrow().sort_by("id").to_pylist() == [{**rows[0], "v": values[1]}, *rows[1:]]
        dataset.verify()
        table = OtherEngine(workspace, dataset).table
        one = table.spec().fields[0].transform.transform(table.schema().find_type(2))
        assert len({task.file.partition[0] for task in table.scan().plan_files()}) == len(
            {one(value) for value in (values if kind != "uuid" else [each and each.bytes for each in values])}
        )


@pytest.mark.parametrize("type_", ["string", "uuid"])
def test_manifests_of_old_and_new_partitions_are_merged(workspace: lakeward.Workspace, type_: str) -> None:
    values = [str(number) if type_ == "string" else uuid.UUID(int=number) for number in range(8)]
    name = f"main.parts.d{next(_numbers)}"
    dataset = workspace.create_dataset(name, {"id": "long", "v": type_}, ["id"], "iceberg", ["v"])
    for turn, value in enumerate(values):
        dataset.write([{"id": 0, "v": value}, {"id": turn + 1, "v": value}], mode="upsert")
    dataset.write([{"id": 8, "v": values[0], "__op": "update"}, {"id": 7, "v": None, "__op": "delete"}], mode="changes")
    workspace.maintain(dataset.name)
    held = {row["id"]: row["v"] for row in dataset.to_arrow().to_pylist()}
    assert held == {0: values[7], 8: values[0], **{number: values[number - 1] for number in range(1, 7)}}
    assert dataset.verify().equal


VALUES: dict[str, list[Any]] = {
    "boolean": [True, False, None],
    "int": [-(2**31) + 5, -1, 0, None, 2**31 - 1],
    "decimal": [Decimal("-0.000001"), Decimal("1.5"), None, Decimal("99999999999999999999999999999999.999999")],
    "binary": [b"", b"\xff\x00", None, b"/../"],
    "uuid": [uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), None],
    "date": [datetime.date(1, 1, 1), datetime.date(1969, 12, 31), None, datetime.date(9999, 12, 31)],
    "time": [datetime.time(0), datetime.time(23, 59, 59, 999_999), None],
    "timestamptz": [
        datetime.datetime(1, 1, 1, tzinfo=datetime.UTC),
        datetime.datetime(1969, 12, 31, 23, 59, 59, 999_999, tzinfo=datetime.UTC),
        None,
        datetime.datetime(9999, 12, 31, 23, tzinfo=datetime.UTC),
    ],
}


def test_reads_open_the_partitions_that_can_hold_a_row(workspace: lakeward.Workspace) -> None:
    dataset = made(workspace, ["day(ts)", "bucket(4, id)"])
    dataset.write(_rows(range(200)))
    table = OtherEngine(workspace, dataset).table
    every = len(list(table.scan().plan_files()))
    assert len(list(table.scan("id = 5").plan_files())) < every / 3
    assert len(list(table.scan("ts < '1970-01-01T00:00:00'").plan_files())) < every / 3
    assert dataset.to_arrow(where="id = 5").to_pylist() == [row for row in _rows(range(200)) if row["id"] == 5]
    early = datetime.datetime(1970, 1, 1)
    wanted = [row for row in _rows(range(200)) if row["ts"] and row["ts"] < early]
    assert dataset.to_arrow(where="ts < TIMESTAMP '1970-01-01'").sort_by("id").to_pylist() == wanted


@pytest.mark.parametrize(("group", "worth", "most"), [(64, 8, 3), (50, 1000, 1), (7, 1, 64)])
def test_rows_wait_and_files_close_without_a_row_lost(
    workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch, group: int, worth: int, most: int
) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", group)
    monkeypatch.setattr(files, "WORTH_A_GROUP", worth)
    monkeypatch.setattr(files, "MAX_OPEN_FILES", most)
    open_at_once: list[int] = []
    waiting: list[int] = []
    writes, flushes = files.RollingWriter._write, files.RollingWriter._flush

    def write(self: files.RollingWriter, *rows: Any) -> None:
        writes(self, *rows)
        open_at_once.append(len(self._open))

    def flush(self: files.RollingWriter, last: bool) -> None:
        flushes(self, last)
        waiting.append(self._group_rows)

    monkeypatch.setattr(files.RollingWriter, "_write", write)
    monkeypatch.setattr(files.RollingWriter, "_flush", flush)
    dataset = made(workspace, ["bucket(40, id)"])
    wanted = _rows(range(1000))
    batches = pa.Table.from_pylist(wanted).to_reader(max_chunksize=13)
    assert dataset.write(batches).rows_added == 1000
    assert max(open_at_once) <= most
    assert max(waiting) <= group // 2
    assert waiting[-1] == 0
    assert_rows(workspace, dataset, wanted)


def test_a_failed_write_leaves_no_files(workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "ROW_GROUP_ROWS", 64)
    monkeypatch.setattr(files, "MAX_OPEN_FILES", 5)
    dataset = made(workspace, ["bucket(10, id)"])
    dataset.write(_rows(range(3)))
    table = OtherEngine(workspace, dataset).table
    directory = Path(local_path(table.location())) / "data"
    before = sorted(directory.rglob("*.parquet"))

    def failing() -> Iterator[dict[str, Any]]:
        yield from _rows(range(3, 40_000))
        raise RuntimeError("the source broke")

    with pytest.raises(Exception, match="the source broke"):
        dataset.write(failing())
    assert sorted(directory.rglob("*.parquet")) == before
    assert_rows(workspace, dataset, _rows(range(3)))


def test_value_without_a_partition_is_refused_by_name(workspace: lakeward.Workspace) -> None:
    dataset = made(workspace, ["truncate(10, id)"])
    dataset.write(_rows(range(3)))
    with pytest.raises(DataError, match=r"a value of 'id' has no partition by 'id_trunc_10'") as raised:
        dataset.write([{**_rows(range(1))[0], "id": -(2**63)}])
    assert raised.value.safe == "nothing was written"
    assert_rows(workspace, dataset, _rows(range(3)))


def test_column_that_is_called_like_a_partition_is_none(workspace: lakeward.Workspace) -> None:
    columns = {"id": "long", "id_bucket_4": "string", "a.b c": "date", "a.b c_day": "int", "Ü": "string"}
    name = f"main.parts.d{next(_numbers)}"
    declared = ["bucket(4, id)", 'day("a.b c")', "id_bucket_4", "truncate(1, Ü)"]
    dataset = workspace.create_dataset(name, columns, ["id"], "iceberg", declared)
    rows = [
        {"id": number, "id_bucket_4": "x", "a.b c": datetime.date(2024, 1, number + 1), "a.b c_day": number, "Ü": "ää"}
        for number in range(9)
    ]
    dataset.write(rows)
    dataset.write([{**rows[0], "Ü": "bb"}], mode="upsert")
    assert dataset.to_arrow().sort_by("id").to_pylist() == [{**rows[0], "Ü": "bb"}, *rows[1:]]
    found = OtherEngine(workspace, dataset).table.scan(selected_fields=("id", "Ü")).to_arrow().sort_by("id")
    assert found["Ü"].to_pylist() == ["bb", *["ää"] * 8]


def test_partitions_are_part_of_a_declaration(workspace: lakeward.Workspace) -> None:
    dataset = made(workspace, ["Day( ts )"])
    assert dataset.record.partition_by == ("day(ts)",)
    again = workspace.declare_dataset(dataset.name, COLUMNS, ["id"], "iceberg", ["day(ts)"])
    assert again.actions() == []
    assert workspace.declare_dataset(dataset.name, COLUMNS, ["id"]).actions() == []
    for other in ([], ["month(ts)"]):
        with pytest.raises(NameTaken, match=r"it is partitioned by day\(ts\), and .* was declared"):
            workspace.declare_dataset(dataset.name, COLUMNS, ["id"], None, other)
    with pytest.raises(SchemaError, match=r"can't partition by 'day\(region\)'"):
        made(workspace, ["day(region)"])


def test_rows_of_postgres_are_partitioned_when_they_are_copied(workspace: lakeward.Workspace) -> None:
    dataset = made(workspace, ["day(ts)"], arm="postgres")
    dataset.write(_rows(range(30)))
    dataset.write(_rows(range(5, 9), salt=3), mode="upsert")
    workspace.storage.copy(dataset.record, to="iceberg")
    now = {row["id"]: row for row in [*_rows(range(30)), *_rows(range(5, 9), salt=3)]}
    table = assert_rows(workspace, dataset, list(now.values()))
    assert [str(field.transform) for field in table.spec().fields] == ["day"]


def test_partitions_of_another_engine_by_floats_and_inside_structs(workspace: lakeward.Workspace) -> None:
    name = f"main.parts.d{next(_numbers)}"
    columns = {"id": "long", "x": "double", "s": "struct<a: string, b: long>"}
    dataset = workspace.create_dataset(name, columns, ["id"], arm="iceberg")
    dataset.write([{"id": 0, "x": None, "s": None}])
    other = OtherEngine(workspace, dataset)
    with other.table.update_spec() as update:
        update.add_field("x", IdentityTransform(), "by_x")
        update.add_field("s.b", BucketTransform(3), "by_b")
    floats = [float("nan"), -0.0, 0.0, float("inf"), -1.5, None, float("nan")]
    dataset.write([{"id": at, "x": x, "s": {"a": "q", "b": at} if at % 2 else None} for at, x in enumerate(floats, 1)])
    dataset.write([{"id": 1, "x": 2.0, "s": None}, {"id": 5, "x": float("nan"), "s": None}], mode="upsert")
    assert dataset.verify().equal
    bucket = BucketTransform(3).transform(LongType())
    rows = {row["id"]: row for row in dataset.to_arrow().to_pylist()}
    assert sorted(rows) == list(range(8))
    for task in other.table.scan().plan_files():
        if not task.file.spec_id:
            continue
        for id_ in pq.ParquetFile(local_path(task.file.file_path)).read(["id"])["id"].to_pylist():
            row, (x, b) = rows[id_], task.file.partition
            if not task.delete_files and id_ not in (1, 5):
                assert (repr(x), b) == (repr(row["x"]), bucket(row["s"]["b"]) if row["s"] else None)
    for where, ids in {"isnan(x)": [5, 7], "x = 0": [2, 3], "x IS NULL": [0, 6], "s.b = 7": [7]}.items():
        assert sorted(dataset.to_arrow(where=where)["id"].to_pylist()) == ids


def test_what_can_not_be_computed_is_refused_before_anything_is_written(workspace: lakeward.Workspace) -> None:
    dataset = made(workspace, ["day(ts)"])
    dataset.write(_rows(range(3)))
    table = OtherEngine(workspace, dataset).table
    (field,) = table.spec().fields
    unknown = field.model_copy(update={"transform": UnknownTransform("zorder")})
    metadata = table.metadata.model_copy(update={"partition_specs": [PartitionSpec(unknown)]})
    foreign = Table(table.name(), metadata, table.metadata_location, table.io, table.catalog)
    with pytest.raises(DataError, match="is partitioned by 'ts_day'") as raised:
        files.RollingWriter(foreign, "x", 1, "dataset d", dataset.schema)
    assert raised.value.safe == "nothing was written"
