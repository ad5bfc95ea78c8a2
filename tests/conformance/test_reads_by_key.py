"""Rows are read by their keys: those that are there, at any version, and no others."""

from __future__ import annotations

import pyarrow as pa
import pytest

from lakeward.storage.arms.postgres import keyed_rows
from support.arms import ArmUnderTest, HeldDataset


def read(dataset: HeldDataset, keys: pa.Table, **how: object) -> list[tuple[object, ...]]:
    return sorted(tuple(row.values()) for row in dataset.to_arrow(keys=keys, **how).to_pylist())


@pytest.mark.parametrize("most", [keyed_rows.MOST_KEYS, 0])
def test_by_one_column(arm: ArmUnderTest, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(keyed_rows, "MOST_KEYS", most)
    dataset = arm.create({"v": "string", "id": "long"}, ["id"])
    dataset.write([{"id": number, "v": f"v{number}"} for number in range(1000)], "replace")
    dataset.write([{"id": 7, "v": "new"}, {"id": 2000, "v": "more"}], "upsert")
    dataset.write([{"id": 8}], "delete")
    keys = pa.table({"id": pa.array([7, 8, 9, 2000, 3000])})
    assert read(dataset, keys) == [("more", 2000), ("new", 7), ("v9", 9)]
    assert read(dataset, keys, columns=["v"], where="id < 9") == [("new",)]
    assert read(dataset, keys, version=1) == [("v7", 7), ("v8", 8), ("v9", 9)]
    assert read(dataset, keys, since=1, columns=["v"]) == [("more",), ("new",)]
    assert read(dataset, keys.slice(0, 0)) == []


def test_by_several_columns(arm: ArmUnderTest) -> None:
    dataset = arm.create({"day": "date", 'code "x"': "string", "v": "int"}, ['code "x"', "day"])
    days = pa.array([1, 1, 2], pa.int32()).cast(pa.date32())
    dataset.write(pa.table({"day": days, 'code "x"': ["é", "b", "é"], "v": pa.array([1, 2, 3], pa.int32())}), "upsert")
    keys = pa.table({'code "x"': ["é", "b"], "day": days.slice(1).take(pa.array([1, 1]))})
    assert [row[2] for row in read(dataset, keys)] == [3]
