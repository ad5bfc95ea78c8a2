"""Projection and filters: the same rows on every arm, because DuckDB applies every filter and an arm only prunes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from lakeward.errors import SqlError, StorageError
from lakeward.storage.requests import ReadRequest
from support.arms import ArmUnderTest, HeldDataset

COLUMNS = {
    "id": "long",
    "small": "int",
    "note": "string",
    "amount": "decimal(12,3)",
    "place": 'struct<city: string, "the zip": int>',
    "tags": "list<string>",
    'q"x': "string",
    "two words": "int",
}
NOTES = ["it's", 'say "hi"', "50 %", "", None, "null", "'; DROP TABLE x; --", "é😀"]


def row(number: int) -> dict[str, Any]:
    return {
        "id": number,
        "small": None if number == 3 else -number,
        "note": NOTES[number],
        "amount": Decimal(number) / 4,
        "place": None if number == 5 else {"city": f"c{number}", "the zip": number},
        "tags": [f"t{number}", "all"],
        'q"x': f"q{number}",
        "two words": number % 2,
    }


ROWS = [row(number) for number in range(len(NOTES))]


@pytest.fixture(scope="module")
def filled(shared: Any) -> dict[str, HeldDataset]:
    """One dataset on each arm, in two versions, so that there are several files and versions to prune."""
    found = {}
    for name in shared.storage.routing.arms:
        dataset = ArmUnderTest(shared, name).create(COLUMNS, ["id"])
        dataset.write(ROWS[:4])
        dataset.write(ROWS[4:])
        found[name] = dataset
    return found


@pytest.fixture
def dataset(arm: ArmUnderTest, filled: dict[str, HeldDataset]) -> HeldDataset:
    return filled[arm.name]


def test_columns_come_in_the_order_that_is_asked_for(dataset: HeldDataset) -> None:
    table = dataset.to_arrow(columns=["two words", "id", 'q"x'])
    assert table.schema.names == ["two words", "id", 'q"x']
    assert sorted(table.column("id").to_pylist()) == list(range(8))
    assert dataset.to_arrow(columns=["id"], identity=True).schema.names[0] == "id"
    assert dataset.rows() == ROWS


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("id > 4", [5, 6, 7]),
        ("4 < id AND id <= 6", [5, 6]),
        ("id = 3 OR id = 6", [3, 6]),
        ("id = 99", []),
        ("id = 1 AND small = -1", [1]),
        ("id >= -9223372036854775808 AND id < 1", [0]),
        ("id < 99999999999999999999", list(range(8))),
        ("small IS NULL", [3]),
        ("small < -5", [6, 7]),
        ("note IS NULL", [4]),
        ("note = ''", [3]),
        ("note = 'it''s'", [0]),
        ("note = 'say \"hi\"'", [1]),
        ("note LIKE '50 \\%' ESCAPE '\\'", [2]),
        ("note LIKE '%DROP TABLE%'", [6]),
        ("note = 'é😀'", [7]),
        ("note IS DISTINCT FROM 'null'", [0, 1, 2, 3, 4, 6, 7]),
        ("amount > 1.25", [6, 7]),
        ("amount = 0.250", [1]),
        ("place.city = 'c2'", [2]),
        ("place IS NULL", [5]),
        ('place."the zip" > 5', [6, 7]),
        ("list_contains(tags, 't7')", [7]),
        ('"q""x" = \'q4\'', [4]),
        ('"two words" = 1 AND id < 4', [1, 3]),
        ("NOT (id > 1)", [0, 1]),
        ("CASE WHEN id = 2 THEN true ELSE false END", [2]),
        ("id IN (1, 7, 9)", [1, 7]),
        ("id BETWEEN 2 AND 3 -- a comment", [2, 3]),
        ("ID = 2", [2]),
        ("true", list(range(8))),
        ("NULL", []),
    ],
)
def test_filters(dataset: HeldDataset, where: str, expected: list[int]) -> None:
    assert sorted(dataset.to_arrow(columns=["id"], where=where).column("id").to_pylist()) == expected
    # A projection without the filter's columns, and one with identity, give the same rows.
    other = dataset.to_arrow(columns=["tags"], where=where, identity=True)
    assert sorted(other.column("__row_index").to_pylist()) == expected


@pytest.mark.parametrize("of", ["d", "f", "s.x", "s.y.z"])
def test_filters_by_numbers_of_a_file_that_holds_nan(arm: ArmUnderTest, of: str) -> None:
    """Parquet's bounds say nothing of NaN, which is greater than every number."""
    columns = {"id": "long", "d": "double", "f": "float", "s": "struct<x: double, y: struct<z: float>>"}
    dataset = arm.create(columns, ["id"])
    numbers = {1: float("nan"), 2: 1.5, 3: None}
    dataset.write([{"id": id_, "d": x, "f": x, "s": {"x": x, "y": {"z": x}}} for id_, x in numbers.items()])
    for where in ("isnan({})", "{} = 'nan'::double", "{} > 2", "{} >= 1e30", "{} <> 1.5", "{} NOT IN (1.5)"):
        assert dataset.to_arrow(columns=["id"], where=where.format(of))["id"].to_pylist() == [1], where
    for where in ("{} = 1.5", "{} < 2", "{} <> 'nan'::double"):
        assert dataset.to_arrow(columns=["id"], where=where.format(of))["id"].to_pylist() == [2], where
    assert dataset.to_arrow(columns=["id"], where=f"{of} IS NULL")["id"].to_pylist() == [3]


def test_a_filter_with_since_and_an_older_version(dataset: HeldDataset) -> None:
    assert sorted(dataset.to_arrow(columns=["id"], where="id > 2", version=1)["id"].to_pylist()) == [3]
    assert sorted(dataset.to_arrow(columns=["id"], where="id > 2", since=1)["id"].to_pylist()) == [4, 5, 6, 7]


@pytest.mark.parametrize(
    "where",
    [
        "note + 1 > 'x'",
        "nosuchfunction(id)",
        "note::int > 5",
        "place.nosuchfield = 1",
    ],
)
def test_a_filter_that_can_not_be_evaluated_is_a_sql_error(dataset: HeldDataset, where: str) -> None:
    with pytest.raises(SqlError, match="can't be evaluated"):
        dataset.to_arrow(where=where)


def test_a_reader_that_is_given_up_early_harms_nobody(dataset: HeldDataset) -> None:
    for where in (None, "id > 0"):
        for _ in range(30):
            request = ReadRequest(where=where, arm=dataset.arm)
            reader = dataset.workspace.storage.read(dataset.record, request)
            reader.read_next_batch()
            reader.close()
    assert dataset.rows() == ROWS


def test_a_stored_value_that_no_longer_casts_is_named(shared: Any) -> None:
    dataset = ArmUnderTest(shared, "postgres").create({"id": "long", "day": "date", "big": "decimal(5,2)"})
    dataset.write([{"id": 1, "day": None, "big": None}, {"id": 2, "day": None, "big": None}])
    with shared.database.driver() as connection:
        connection.execute(
            "UPDATE lakeward.dataset_rows SET data = jsonb_set(data, '{day}', '\"soon\"') "
            "WHERE dataset_id = %s AND row_index = 1",
            (dataset.created.id,),
        )
        connection.commit()
    with pytest.raises(StorageError) as caught:
        dataset.to_arrow()
    assert dataset.created.name in caught.value.message
    assert "'day'" in caught.value.message
    assert caught.value.fields["column"] == "day"
    assert caught.value.fields["dataset"] == dataset.created.name
    assert dataset.to_arrow(columns=["id"]).num_rows == 2
    with pytest.raises(StorageError, match="'day'"):
        dataset.to_arrow(columns=["day"], where="id = 2")
