"""Keyed writes as other engines see them: one snapshot each, with all of its rows, and no state in between."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import lakeward
from conformance.test_keyed_writes import CHANGES, NEITHER, OLD, rows
from lakeward.errors import LakewardError
from lakeward.storage.verbs import KEYED
from support.arms import ArmUnderTest, HeldDataset, branches, iceberg_table
from support.outside import main_by_duckdb, main_by_pyiceberg, snapshot_rows


@pytest.fixture
def dataset(shared: lakeward.Workspace) -> HeldDataset:
    """Three rows in an Iceberg table."""
    made = ArmUnderTest(shared, "iceberg").create({"id": "long", "note": "string"}, ["id"])
    made.write(rows(*OLD))
    return made


def assert_main_is_the_head(dataset: HeldDataset) -> None:
    expected = dataset.rows(identity=True)
    table = iceberg_table(dataset.workspace, dataset.table)
    assert main_by_pyiceberg(table).to_pylist() == expected
    assert main_by_duckdb(table).to_pylist() == expected
    assert branches(dataset.workspace, dataset.table) == []


def totals(table: Any) -> list[int]:
    """Return what each snapshot's summary says of its rows."""
    summaries = [snapshot.summary for snapshot in table.metadata.snapshots]
    return [int(each["total-records"]) - int(each["total-position-deletes"] or 0) for each in summaries]


@pytest.mark.parametrize("verb", KEYED)
def test_c06_one_snapshot_with_all_rows(dataset: HeldDataset, verb: str) -> None:
    given, _, after = CHANGES[verb]
    dataset.write(given, verb)
    assert_main_is_the_head(dataset)
    table = iceberg_table(dataset.workspace, dataset.table)
    assert snapshot_rows(table) == [0, 3, len(after)] == totals(table)
    versions = [snapshot.summary["lakeward.version"] for snapshot in table.metadata.snapshots]
    assert versions == ["0", "1", "2"]
    parents = [snapshot.parent_snapshot_id for snapshot in table.metadata.snapshots[1:]]
    assert parents == [snapshot.snapshot_id for snapshot in table.metadata.snapshots[:-1]]


def test_c06_no_state_without_rows_in_a_mixed_history(dataset: HeldDataset) -> None:
    expected = [0, 3]
    for _ in range(2):
        for verb in KEYED:
            if dataset.write(CHANGES[verb][0], verb).committed:
                expected.append(dataset.record.row_count)
            assert_main_is_the_head(dataset)
        dataset.write(rows(*OLD), "replace")
        expected.append(3)
        assert_main_is_the_head(dataset)
    table = iceberg_table(dataset.workspace, dataset.table)
    assert snapshot_rows(table) == expected == totals(table)
    assert 0 not in expected[1:]


@pytest.mark.parametrize("verb", KEYED)
def test_u03_a_write_that_changes_nothing_leaves_no_snapshot_and_no_branch(dataset: HeldDataset, verb: str) -> None:
    before = iceberg_table(dataset.workspace, dataset.table).metadata
    assert not dataset.write(NEITHER[verb], verb).committed
    if verb != "mirror":
        assert not dataset.write([], verb).committed
    doubled = [*CHANGES[verb][0], CHANGES[verb][0][0]]
    with pytest.raises(LakewardError, match="more than once"):
        dataset.write(doubled, verb)
    after = iceberg_table(dataset.workspace, dataset.table).metadata
    assert after.snapshots == before.snapshots
    assert after.refs == before.refs


def test_all_types_as_other_engines_read_them(shared: lakeward.Workspace) -> None:
    columns = {"id": "long", "d": "double", "l": "list<int>", "s": "struct<x: int, y: string>", "m": "decimal(9,2)"}
    dataset = ArmUnderTest(shared, "iceberg").create(columns, ["id"])
    nothing = dict.fromkeys(columns)
    dataset.write([{**nothing, "id": number} for number in range(5)])
    dataset.write(
        [
            {"id": 1, "d": float("nan"), "l": [], "s": {"x": None, "y": ""}, "m": Decimal("1.50")},
            {"id": 2, "d": -0.0, "l": [None], "s": None, "m": None},
            {"id": 9, "d": 1.0, "l": [1, 2], "s": {"x": 1, "y": None}, "m": Decimal("-0.01")},
        ],
        "upsert",
    )
    expected = repr(dataset.rows(identity=True))
    table = iceberg_table(dataset.workspace, dataset.table)
    assert repr(main_by_pyiceberg(table).to_pylist()) == expected
    assert repr(main_by_duckdb(table).to_pylist()) == expected
