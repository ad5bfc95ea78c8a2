"""An Iceberg table that another engine wrote comes under a dataset: no file is copied, no row is lost or doubled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg import types as iceberg
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.schema import Schema
from pyiceberg.table import Table

import lakeward
from lakeward.control.identifiers import home
from lakeward.control.moves import Relocation
from lakeward.errors import (
    ColumnMismatch,
    ConflictError,
    DataError,
    Diverged,
    LakewardError,
    NameTaken,
    SchemaError,
    UnknownObject,
    UsageError,
)
from lakeward.testing import raise_at
from lakeward.types.schema import IDENTITY_COLUMNS

MakeTable = Callable[..., Table]

A = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "note": ["a", "b", "c"]})
B = pa.table({"id": pa.array([4, 5], pa.int64()), "note": ["d", "e"]})
ROWS = [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")]


def name_of(table: Table) -> str:
    return ".".join(table.name())


def adopt(workspace: lakeward.Workspace, table: Table, *key: str, **how: Any) -> lakeward.Dataset:
    plan = workspace.adopting.plan(name_of(table), f"main.adopted.{table.name()[-1]}", key, **how)
    workspace.adopting.run(plan)
    return workspace.dataset(plan.name)


def content(dataset: lakeward.Dataset, **how: Any) -> list[tuple[int, str]]:
    found = dataset.to_arrow(**how)
    return sorted(zip(found["id"].to_pylist(), found["note"].to_pylist(), strict=True))


def files(table: Table) -> set[Path]:
    return set(Path(table.location().removeprefix("file://")).rglob("*.parquet"))


def test_it_is_read_at_once_and_nothing_is_copied(workspace: lakeward.Workspace, make_table: MakeTable) -> None:
    table = make_table(A, B)
    before, head = files(table), table.current_snapshot()
    dataset = adopt(workspace, table, "id")
    assert (dataset.version, dataset.row_count, dataset.arm) == (1, 5, "iceberg")
    assert content(dataset) == ROWS and content(dataset, where="id > 3") == ROWS[3:]
    assert dataset.digest().count == 5 and dataset.verify()
    table.refresh()
    assert files(table) == before and table.current_snapshot() == head
    assert table.properties["lakeward.dataset"] == str(dataset.record.uid)
    assert table.properties["gc.enabled"] == "false"
    report = workspace.maintain(dataset.name, older_than=60)
    assert (report.removed, report.compacted, report.failures) == ([], [], []) and files(table) == before


def test_rows_have_an_identity_before_they_have_identity_columns(
    workspace: lakeward.Workspace, make_table: MakeTable
) -> None:
    dataset = adopt(workspace, make_table(A, B))
    found = dataset.to_arrow(identity=True).sort_by("__row_index")
    assert found["id"].to_pylist() == [1, 2, 3, 4, 5]
    assert found["__row_id"].to_pylist() == found["__row_index"].to_pylist() == [0, 1, 2, 3, 4]
    assert set(found["__version"].to_pylist()) == {1} and len(set(found["__created_at"].to_pylist())) == 1
    assert content(dataset, since=0) == ROWS and content(dataset, since=1) == []
    # They keep it when it is written down.
    dataset.write([{"id": 6, "note": "f"}])
    assert dataset.version == 3
    assert dataset.to_arrow(identity=True, version=2).sort_by("__row_index").equals(found)
    assert list(dataset.changes(1, 2)) == [] and content(dataset, since=1) == [(6, "f")]
    assert dataset.to_arrow(identity=True, since=2)["__row_id"].to_pylist() == [5]


@pytest.mark.parametrize(
    ("mode", "rows", "expected"),
    [
        ("append", [{"id": 6, "note": "f"}], [*ROWS, (6, "f")]),
        ("upsert", [{"id": 2, "note": "new"}, {"id": 6, "note": "f"}], [(1, "a"), (2, "new"), *ROWS[2:], (6, "f")]),
        ("replace", [{"id": 6, "note": "f"}], [(6, "f")]),
        ("delete", [{"id": 1}], ROWS[1:]),
    ],
)
def test_the_first_write_is_right(
    workspace: lakeward.Workspace, make_table: MakeTable, mode: str, rows: list[dict[str, Any]], expected: object
) -> None:
    table = make_table(A, B)
    dataset = adopt(workspace, table, "id")
    digest = dataset.digest()
    written = dataset.write(rows, mode=mode)
    assert (written.version, written.row_count) == (3, len(expected))  # type: ignore[arg-type]
    assert content(dataset) == expected and content(dataset, version=1) == content(dataset, version=2) == ROWS
    assert dataset.digest(version=2) == digest and dataset.verify()
    assert [each.verb for each in dataset.history()] == [mode, "identify", "take"]
    assert not dataset.record.unnumbered
    ids = dataset.to_arrow(identity=True)["__row_id"].to_pylist()
    assert len(set(ids)) == len(ids) == len(expected)  # type: ignore[arg-type]
    # Whoever reads the table without us finds the same rows.
    assert table.refresh().scan().to_arrow().num_rows == len(expected)  # type: ignore[arg-type]


def test_deleted_rows_stay_deleted(workspace: lakeward.Workspace, theirs: SqlCatalog, make_table: MakeTable) -> None:
    """A table that a dataset of ours has written, with delete files, comes under another one."""
    source = workspace.create_dataset("main.adopted.source", {"id": "long", "note": "string"}, ["id"], arm="iceberg")
    source.write(A)
    source.write([{"id": 2}], mode="delete")
    loaded = theirs.load_table(source.record.identifier.parts)
    with loaded.update_schema() as update:
        for column in IDENTITY_COLUMNS:
            update.delete_column(column)
    # A snapshot under these columns, with the same delete file.
    loaded.append(pa.table({"id": pa.array([9], pa.int64()), "note": ["z"]}))
    theirs.drop_table(loaded.name())
    table = theirs.register_table(("theirs", "with_deletes"), loaded.metadata_location)
    with table.transaction() as transaction:
        transaction.remove_properties("lakeward.dataset")
    dataset = adopt(workspace, table.refresh(), "id")
    expected = [(1, "a"), (3, "c"), (9, "z")]
    assert content(dataset) == expected and dataset.row_count == 3
    dataset.write([{"id": 10, "note": "x"}])
    assert content(dataset) == [*expected, (10, "x")]
    assert len(set(dataset.to_arrow(identity=True)["__row_id"].to_pylist())) == 4


def test_a_table_without_a_snapshot_has_no_rows(workspace: lakeward.Workspace, make_table: MakeTable) -> None:
    dataset = adopt(workspace, make_table(schema=A.schema), "id", add_identity=True)
    assert dataset.row_count == 0 and content(dataset) == []
    dataset.write(A, mode="upsert")
    assert content(dataset) == ROWS[:3]


def test_it_moves_and_flips_as_any_other(workspace: lakeward.Workspace, make_table: MakeTable) -> None:
    table = make_table(A, B)
    dataset = adopt(workspace, table, "id")
    record = dataset.record
    workspace.moving.move(record, Relocation(record.identifier, home(record.slugs)))
    assert dataset.record.identifier == home(record.slugs) and content(dataset) == ROWS
    assert dataset.locate()["iceberg"]["location"] == table.location()
    workspace.flip(dataset.name).run(to="postgres")
    dataset.write([{"id": 1, "note": "new"}], mode="upsert")
    assert dataset.arm == "postgres" and content(dataset) == [(1, "new"), *ROWS[1:]]
    assert content(dataset, arm="iceberg") == content(dataset) and dataset.verify()


def test_what_the_other_engine_writes_later_is_seen(workspace: lakeward.Workspace, make_table: MakeTable) -> None:
    table = make_table(A)
    dataset = adopt(workspace, table, "id")
    table.refresh().append(B)
    assert content(dataset) == ROWS[:3]
    with pytest.raises(Diverged):
        dataset.write([{"id": 9, "note": "z"}])
    with pytest.raises(DataError, match="without identity"):
        dataset.adopt()
    dataset.adopt(renumber=True)
    assert content(dataset) == ROWS and content(dataset, since=1) == ROWS[3:]
    dataset.write([{"id": 9, "note": "z"}])
    assert content(dataset) == [*ROWS, (9, "z")]


def test_adoption_that_was_cut_short_is_repeated(workspace: lakeward.Workspace, make_table: MakeTable) -> None:
    table = make_table(A)
    plan = workspace.adopting.plan(name_of(table), "main.adopted.cut", ["id"])
    table.append(B)
    with pytest.raises(ConflictError, match="moved on"):
        workspace.adopting.run(plan)
    with pytest.raises(UsageError, match="has not come under"):
        workspace.dataset("main.adopted.cut").write(A)
    again = workspace.adopting.plan(name_of(table), "main.adopted.cut", ["id"])
    assert not any("create" in action for action in again.actions())
    workspace.adopting.run(again)
    assert content(workspace.dataset("main.adopted.cut")) == ROWS
    # Done already, there is nothing to do, but for what is asked besides.
    done = workspace.adopting.plan(name_of(table), "main.adopted.cut", ["id"])
    assert done.actions() == [] and not workspace.adopting.run(done).committed
    numbered = workspace.adopting.plan(name_of(table), "main.adopted.cut", ["id"], add_identity=True)
    assert len(numbered.actions()) == 1
    workspace.adopting.run(numbered)
    assert not workspace.dataset("main.adopted.cut").record.unnumbered


def test_a_column_that_the_table_requires_takes_no_nulls(workspace: lakeward.Workspace, make_table: MakeTable) -> None:
    required = Schema(iceberg.NestedField(1, "id", iceberg.LongType(), required=True))
    table = make_table(schema=required)
    table.append(pa.table({"id": pa.array([1], pa.int64())}, schema=required.as_arrow()))
    dataset = adopt(workspace, table)
    with pytest.raises(DataError, match="requires column 'id', which is null in 1 rows"):
        dataset.write([{"id": 2}, {"id": None}])
    assert dataset.write([{"id": 2}]).row_count == 2


@pytest.mark.parametrize(
    "point", ["intent:opened", "audit", "decide", "decide:committed", "prepare:files", "prepare:committed", "publish"]
)
def test_a_crash_loses_nothing(
    opens: Callable[..., lakeward.Workspace], workspace: lakeward.Workspace, make_table: MakeTable, point: str
) -> None:
    """Of adopting, or of the version that writes the identity columns, whichever comes to the point first."""
    table = make_table(A, B)
    name = f"main.adopted.crash_{table.name()[-1]}"
    with opens(raise_at(point, KeyboardInterrupt())) as other, pytest.raises(KeyboardInterrupt):
        other.adopting.run(other.adopting.plan(name_of(table), name, ["id"], add_identity=True))
    workspace.recover()
    workspace.adopting.run(workspace.adopting.plan(name_of(table), name, ["id"]))
    dataset = workspace.dataset(name)
    assert content(dataset) == ROWS
    dataset.write([{"id": 1, "note": "new"}, {"id": 6, "note": "f"}], mode="upsert")
    assert content(dataset) == [(1, "new"), *ROWS[1:], (6, "f")]
    assert sorted(dataset.to_arrow(identity=True)["__row_id"].to_pylist()) == list(range(6))
    assert [each.verb for each in dataset.history() if each.status == "committed"] == ["upsert", "identify", "take"]
    assert not dataset.record.unnumbered and dataset.verify()


def test_a_dry_run_changes_nothing(workspace: lakeward.Workspace, make_table: MakeTable) -> None:
    table = make_table(A)
    plan = workspace.adopting.plan(name_of(table), "main.adopted.dry", ["id"], add_identity=True)
    assert (plan.rows, plan.schema.names) == (3, ("id", "note")) and len(plan.actions()) == 4
    assert workspace.tree.find("main.adopted.dry") is None
    assert table.refresh().properties.get("lakeward.dataset") is None


TWICE = pa.table({"id": pa.array([1, 1, 2], pa.int64()), "note": ["a", "b", "c"]})
NULL = pa.table({"id": pa.array([1, None], pa.int64()), "note": ["a", "b"]})
FLOATS = pa.table({"id": pa.array([1.0]), "note": ["a"]})


@pytest.mark.parametrize(
    ("rows", "key", "error", "says"),
    [
        (TWICE, "id", DataError, r"\(id\) is not unique: \(1\) 2 times"),
        (NULL, "id", DataError, "column 'id' is null in 1 of 2 rows"),
        (FLOATS, "id", SchemaError, "'id' is a double"),
        (A, "nothing", SchemaError, "'nothing' is not a column"),
    ],
)
def test_a_key_that_is_none_is_refused(
    workspace: lakeward.Workspace,
    make_table: MakeTable,
    rows: pa.Table,
    key: str,
    error: type[LakewardError],
    says: str,
) -> None:
    table = make_table(rows)
    with pytest.raises(error, match=says):
        adopt(workspace, table, key)
    assert table.refresh().properties.get("lakeward.dataset") is None


def test_what_can_not_be_adopted_is_refused(
    workspace: lakeward.Workspace, theirs: SqlCatalog, make_table: MakeTable, tmp_path: Path
) -> None:
    table = make_table(A)
    adopt(workspace, table)
    with pytest.raises(ConflictError, match=f"belongs to dataset main.adopted.{table.name()[-1]}"):
        workspace.adopting.plan(name_of(table), "main.adopted.other")
    with pytest.raises(UnknownObject) as unknown:
        workspace.adopting.plan(f"theirs.{table.name()[-1]}x")
    assert name_of(table) in str(unknown.value.next_step)
    with pytest.raises(NameTaken):
        workspace.adopting.plan(name_of(make_table(A)), f"main.adopted.{table.name()[-1]}")
    old = make_table(A, properties={"format-version": "1"})
    with pytest.raises(UsageError, match="format version 1"):
        workspace.adopting.plan(name_of(old))
    map_type = iceberg.MapType(2, iceberg.StringType(), 3, iceberg.StringType())
    odd = make_table(schema=Schema(iceberg.NestedField(1, "tags", map_type)))
    with pytest.raises(ColumnMismatch, match="'tags'"):
        workspace.adopting.plan(name_of(odd))
    away = make_table(A, location=f"file://{tmp_path}/away")
    with pytest.raises(UsageError, match="outside of the warehouse"):
        workspace.adopting.plan(name_of(away))
    sideways = make_table(A, location=f"{workspace.adopting.plan(name_of(make_table(A))).table.location}/../../../x")
    with pytest.raises(UsageError, match="outside of the warehouse"):
        workspace.adopting.plan(name_of(sideways))
    allowed = workspace.adopting.plan(name_of(away), allow=[f"file://{tmp_path}"])
    assert not allowed.table.inside and allowed.name == f"main.theirs.{away.name()[-1]}"


def test_files_outside_of_the_warehouse_are_written_to_and_never_removed(
    workspace: lakeward.Workspace, make_table: MakeTable, tmp_path: Path
) -> None:
    table = make_table(A, B, location=f"file://{tmp_path}/away")
    dataset = adopt(workspace, table, "id", allow=[f"file://{tmp_path}"])
    before = files(table)
    for number in range(3):
        dataset.write([{"id": 6, "note": f"f{number}"}], mode="upsert")
    report = workspace.maintain(dataset.name, older_than=60)
    assert (report.removed, report.failures) == ([], []) and before <= files(table)
    assert content(dataset) == [*ROWS, (6, "f2")] and content(dataset, version=1) == ROWS
