"""Other engines at the Iceberg table: PyIceberg and DuckDB read `main`, and what they write is never overwritten."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import Diverged
from support.arms import ArmUnderTest, HeldDataset, branches, iceberg_table

IDENTITY = ["__row_index", "__row_id", "__created_at", "__version"]


@pytest.fixture
def dataset(shared: lakeward.Workspace) -> HeldDataset:
    return ArmUnderTest(shared, "iceberg").create({"id": "long", "two words": "string", "s": 'struct<"a b": int>'})


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "two words": f"w{number}", "s": {"a b": number}} for number in ids]


def main_by_pyiceberg(dataset: HeldDataset) -> list[dict[str, Any]]:
    table = iceberg_table(dataset.workspace, dataset.table).scan().to_arrow().sort_by("__row_index")
    assert table.column_names[-4:] == IDENTITY
    return table.select(range(table.num_columns - 4)).to_pylist()


def ids_by_duckdb(dataset: HeldDataset) -> list[int]:
    """Read with DuckDB's own Parquet reader what `main` names, without anything of ours."""
    table = iceberg_table(dataset.workspace, dataset.table)
    files = [task.file.file_path.removeprefix("file://") for task in table.scan().plan_files()]
    if not files:
        return []
    with duckdb.connect() as connection:
        found = connection.execute("SELECT id FROM read_parquet(?) ORDER BY __row_index", [files]).fetchall()
    return [number for (number,) in found]


def test_main_is_exactly_the_head_after_every_write(dataset: HeldDataset) -> None:
    for mode, ids, expected in [
        ("append", (1, 2), [1, 2]),
        ("append", (3,), [1, 2, 3]),
        ("replace", (9,), [9]),
        ("append", (4,), [9, 4]),
    ]:
        dataset.write(rows(*ids), mode)
        assert main_by_pyiceberg(dataset) == rows(*expected)
        assert ids_by_duckdb(dataset) == expected
        assert branches(dataset.workspace, dataset.table) == []
    dataset.write([], "replace", allow_empty=True)
    assert main_by_pyiceberg(dataset) == []
    assert ids_by_duckdb(dataset) == []


def test_each_version_is_exactly_one_snapshot_of_ours(dataset: HeldDataset) -> None:
    for mode in ("append", "append", "replace", "append", "replace"):
        dataset.write(rows(1, 2), mode)
    table = iceberg_table(dataset.workspace, dataset.table)
    snapshots = table.metadata.snapshots
    assert [snapshot.summary["lakeward.version"] for snapshot in snapshots] == ["0", "1", "2", "3", "4", "5"]
    assert {snapshot.summary["lakeward.dataset"] for snapshot in snapshots} == {str(dataset.created.uid)}
    history = [each for each in dataset.workspace.transactions() if each.dataset == dataset.created.name]
    assert [snapshot.summary["lakeward.build"] for snapshot in snapshots[1:]] == [
        str(each.build_id) for each in reversed(history)
    ]
    parents = [snapshot.parent_snapshot_id for snapshot in snapshots[1:]]
    assert parents == [snapshot.snapshot_id for snapshot in snapshots[:-1]], "one line, without side branches"


def test_c06_a_replace_leaves_no_empty_state_in_history(dataset: HeldDataset) -> None:
    dataset.write(rows(1, 2))
    dataset.write(rows(3), "replace")
    table = iceberg_table(dataset.workspace, dataset.table)
    counts = [table.scan(snapshot_id=snapshot.snapshot_id).to_arrow().num_rows for snapshot in table.metadata.snapshots]
    assert counts == [0, 2, 1]
    assert [int(snapshot.summary["total-records"]) for snapshot in table.metadata.snapshots] == counts
    assert table.metadata.snapshots[-1].summary.operation.value == "overwrite"


def test_main_and_the_column_types_are_native(dataset: HeldDataset) -> None:
    dataset.write(rows(1))
    schema = iceberg_table(dataset.workspace, dataset.table).schema()
    assert [(field.field_id, field.name, str(field.field_type)) for field in schema.fields[:2]] == [
        (1, "id", "long"),
        (2, "two words", "string"),
    ]


def foreign_append(dataset: HeldDataset, *ids: int) -> None:
    table = iceberg_table(dataset.workspace, dataset.table)
    arrow = table.scan().to_arrow()
    data = pa.Table.from_pylist([{**arrow.to_pylist()[0], "id": number} for number in ids], arrow.schema)
    table.append(data)


def test_a_foreign_commit_is_never_overwritten_and_reads_stay(dataset: HeldDataset) -> None:
    dataset.write(rows(1, 2))
    ours = iceberg_table(dataset.workspace, dataset.table).current_snapshot().snapshot_id
    foreign_append(dataset, 66)
    foreign = iceberg_table(dataset.workspace, dataset.table).current_snapshot().snapshot_id
    with pytest.raises(Diverged, match="has diverged") as caught:
        dataset.write(rows(3), "replace")
    assert caught.value.exit_code == 6
    assert (caught.value.fields["found"], caught.value.fields["expected"]) == (foreign, ours)
    with pytest.raises(Diverged, match="has diverged"):
        dataset.write(rows(3))
    assert dataset.rows() == rows(1, 2)
    assert (dataset.version, dataset.leftovers()) == (1, {})
    table = iceberg_table(dataset.workspace, dataset.table)
    assert table.current_snapshot().snapshot_id == foreign

    with table.manage_snapshots() as manage:
        manage.set_current_snapshot(ours)
    dataset.workspace.restore(dataset.created.name)
    dataset.write(rows(3))
    assert dataset.rows() == rows(1, 2, 3)


def test_a_foreign_commit_between_prepare_and_publish_leaves_the_build_committed(dataset: HeldDataset) -> None:
    dataset.write(rows(1))
    result = dataset.write(rows(2), audit=lambda prepared: foreign_append(dataset, 66))
    assert result.committed
    assert dataset.rows() == rows(1, 2), "readers go through the ledger"
    assert dataset.record.status == "diverged"
    with pytest.raises(Diverged, match="another engine moved"):
        dataset.write(rows(3))
    assert dataset.workspace.recovery.recover(dataset.created.id) == []
    assert dataset.rows() == rows(1, 2)
    assert 66 in ids_by_duckdb(dataset)
