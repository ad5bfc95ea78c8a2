"""A preview shows the first rows as they were written, on every arm, and reads no more than it has to."""

from __future__ import annotations

from typing import Any

import pytest

from lakeward.errors import SqlError
from lakeward.storage.first_rows import FIRST_POSITIONS
from lakeward.storage.requests import ReadRequest
from support.arms import ArmUnderTest, HeldDataset

MANY = FIRST_POSITIONS + 5_000


@pytest.fixture(scope="module")
def filled(shared: Any) -> dict[str, HeldDataset]:
    """One dataset on each arm: a version that was replaced, then two. Ids count down: theirs is another order."""
    found = {}
    for name in shared.storage.routing.arms:
        dataset = ArmUnderTest(shared, name).create({"id": "long", "note": "string"})
        dataset.write([{"id": 7, "note": "old"}, {"id": 8, "note": "old"}])
        dataset.write([{"id": MANY - number, "note": None} for number in range(MANY)], "replace")
        dataset.write([{"id": -1, "note": "last"}])
        found[name] = dataset
    return found


@pytest.fixture
def dataset(arm: ArmUnderTest, filled: dict[str, HeldDataset]) -> HeldDataset:
    return filled[arm.name]


def ids(dataset: HeldDataset, count: int, **request: Any) -> list[int]:
    wanted = ReadRequest(arm=dataset.arm, **request)
    return dataset.workspace.storage.first_rows(dataset.record, count, wanted)["id"].to_pylist()


def test_they_come_in_the_order_of_their_position(dataset: HeldDataset) -> None:
    assert ids(dataset, 3) == [MANY, MANY - 1, MANY - 2]
    assert ids(dataset, 3, version=1) == [7, 8]
    assert ids(dataset, 0) == []
    everything = ids(dataset, MANY + 10)
    assert everything == [*range(MANY, 0, -1), -1]
    assert ids(dataset, MANY + 10, version=2) == everything[:-1]


def test_a_filter_looks_as_far_as_it_must(dataset: HeldDataset) -> None:
    odd = [number for number in range(MANY, MANY - 4, -1) if number % 2]
    assert ids(dataset, 2, where="id % 2 = 1 OR note = 'last'") == odd
    assert ids(dataset, 2, where="id < 3") == [2, 1], "all of them are beyond the first look"
    assert ids(dataset, 9, where="id < 3") == [2, 1, -1]
    assert ids(dataset, 2, where="note = 'never'") == []
    assert ids(dataset, 2, where="note = 'last' OR id = 5 -- a comment") == [5, -1]
    assert ids(dataset, 1, since=2) == [-1]


def test_columns_and_identity_are_those_that_are_asked_for(dataset: HeldDataset) -> None:
    storage = dataset.workspace.storage
    plain = storage.first_rows(dataset.record, 1, ReadRequest(columns=("note",), where="id = 1", arm=dataset.arm))
    assert plain.schema.names == ["note"]
    full = storage.first_rows(dataset.record, 1, ReadRequest(identity=True, where="id = -1", arm=dataset.arm))
    assert full.schema.names == ["id", "note", "__row_index", "__row_id", "__created_at", "__version"]
    assert full["__row_index"].to_pylist() == [MANY]


def test_a_filter_that_would_break_out_is_refused(dataset: HeldDataset) -> None:
    with pytest.raises(SqlError):
        ids(dataset, 1, where="id = 1) OR (1 = 1")


def test_filters_on_identity_columns(dataset: HeldDataset) -> None:
    for where, count in (("__row_index < 5", 5), ("__version > 2", 1), ("__row_id >= 2 AND __row_index <= 1", 2)):
        assert dataset.to_arrow(columns=["id"], where=where).num_rows == count, where


def test_positions_with_gaps_are_looked_through(shared: Any) -> None:
    dataset = ArmUnderTest(shared, "postgres").create({"id": "long"})
    dataset.write([{"id": number} for number in range(5)])
    with shared.database.driver() as connection, connection.transaction():
        connection.execute(
            "UPDATE lakeward.dataset_rows SET row_index = 100 + row_index * 50000 WHERE dataset_id = %s",
            (dataset.created.id,),
        )
        connection.execute("UPDATE lakeward.datasets SET next_row_index = 200101 WHERE id = %s", (dataset.created.id,))
    assert ids(dataset, 2) == [0, 1]
    assert ids(dataset, 4) == [0, 1, 2, 3]
    assert ids(dataset, 4, where="id > 0") == [1, 2, 3, 4]


def test_a_dataset_without_rows(arm: ArmUnderTest) -> None:
    empty = arm.create({"id": "long"})
    assert ids(HeldDataset(empty.workspace, "postgres", empty.created), 3) == []
