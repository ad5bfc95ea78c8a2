"""Who a row is, through every keyed verb: what is updated keeps its id, place and moment; what is new comes behind."""

from __future__ import annotations

import time
from typing import Any

import pytest

from lakeward.storage.verbs import KEYED
from support.arms import ArmUnderTest, HeldDataset

IDENTITY = ("__row_index", "__row_id", "__version")


def rows(*given: tuple[int, Any]) -> list[dict[str, Any]]:
    return [{"id": id_, "v": value} for id_, value in given]


def change(operation: str, id_: int, value: Any = None) -> dict[str, Any]:
    return {"id": id_, "v": value, "__op": operation}


@pytest.fixture
def dataset(arm: ArmUnderTest) -> HeldDataset:
    """Four rows, of versions 1 and 2."""
    made = arm.create({"id": "long", "v": "double"}, ["id"])
    made.write(rows((10, 1.0), (20, 2.0), (30, float("nan"))))
    made.write(rows((40, None)))
    return made


def identity(dataset: HeldDataset, **request: Any) -> dict[int, tuple[int, int, int]]:
    """Return place, id and version of each row, by its key, in the order of their places."""
    return {row["id"]: tuple(row[name] for name in IDENTITY) for row in dataset.rows(identity=True, **request)}


def created(dataset: HeldDataset) -> dict[int, Any]:
    return {row["id"]: row["__created_at"] for row in dataset.rows(identity=True)}


OLD = {10: (0, 0, 1), 20: (1, 1, 1), 30: (2, 2, 1), 40: (3, 3, 2)}

CASES: dict[str, tuple[list[dict[str, Any]], dict[int, tuple[int, int, int]]]] = {
    "append_new": (
        rows((99, 0.0), (20, 7.0), (5, 0.0), (70, 0.0)),
        {**OLD, 99: (4, 4, 3), 5: (5, 5, 3), 70: (6, 6, 3)},
    ),
    "upsert": (
        rows((99, 0.0), (40, 4.0), (5, 0.0), (20, 2.0), (30, float("nan")), (10, None), (1, 0.0)),
        {
            10: (0, 0, 3),
            20: (1, 1, 1),
            30: (2, 2, 1),
            40: (3, 3, 3),
            99: (4, 4, 3),
            5: (5, 5, 3),
            1: (6, 6, 3),
        },
    ),
    "mirror": (
        rows((99, 0.0), (30, float("nan")), (20, 3.0), (5, 0.0)),
        {20: (1, 1, 3), 30: (2, 2, 1), 99: (4, 4, 3), 5: (5, 5, 3)},
    ),
    "changes": (
        [
            change("insert", 99),
            change("delete", 20),
            change("insert", 10, 9.0),
            change("update", 5),
            change("delete", 77),
            change("update", 40, None),
        ],
        {10: (0, 0, 3), 30: (2, 2, 1), 40: (3, 3, 2), 99: (4, 4, 3), 5: (5, 5, 3)},
    ),
    "delete": ([{"id": 40}, {"id": 10}, {"id": 77}], {20: (1, 1, 1), 30: (2, 2, 1)}),
}


def test_every_keyed_verb_is_here() -> None:
    assert set(CASES) == set(KEYED)


@pytest.mark.parametrize("verb", KEYED)
def test_identity(dataset: HeldDataset, verb: str) -> None:
    assert identity(dataset) == OLD
    before = created(dataset)
    time.sleep(0.002)
    given, expected = CASES[verb]
    dataset.write(given, verb)
    assert identity(dataset) == expected
    assert list(identity(dataset)) == list(expected), "in the order of their places"
    after = created(dataset)
    assert {key: after[key] for key in after if key in before} == {key: before[key] for key in after if key in before}
    assert all(after[key] > max(before.values()) for key in after if key not in before)
    assert identity(dataset, version=2) == OLD


@pytest.mark.parametrize("verb", KEYED)
def test_the_next_append_goes_on_behind(dataset: HeldDataset, verb: str) -> None:
    given, expected = CASES[verb]
    dataset.write(given, verb)
    next_place = max([place for place, _, _ in [*expected.values(), *OLD.values()]]) + 1
    dataset.write(rows((1000, 0.0)))
    assert identity(dataset)[1000] == (next_place, next_place, 4)


def test_no_id_and_no_place_is_given_twice(dataset: HeldDataset) -> None:
    dataset.write([{"id": 40}], "delete")
    dataset.write(rows((40, 1.0)), "upsert")
    assert identity(dataset)[40] == (4, 4, 4), "a row that comes back is a new one"
    dataset.write([], "mirror", allow_empty=True)
    dataset.write(rows((10, 1.0), (40, 1.0)), "mirror")
    assert identity(dataset) == {10: (5, 5, 6), 40: (6, 6, 6)}
    dataset.write(rows((10, 1.0)), "replace")
    assert identity(dataset) == {10: (0, 7, 7)}, "a replace numbers places anew"
    dataset.write(rows((40, 1.0), (10, 2.0)), "upsert")
    assert identity(dataset) == {10: (0, 7, 8), 40: (1, 8, 8)}


def test_a_row_keeps_its_identity_through_many_updates(dataset: HeldDataset) -> None:
    moment = created(dataset)[20]
    for turn in range(8):
        verb = ("upsert", "changes")[turn % 2]
        row = change("update", 20, float(turn)) if verb == "changes" else rows((20, float(turn)))[0]
        dataset.write([row], verb)
        assert identity(dataset) == {**OLD, 20: (1, 1, dataset.version)}
        assert created(dataset)[20] == moment
        assert [row["v"] for row in dataset.rows() if row["id"] == 20] == [float(turn)]


def test_what_was_refused_or_changed_nothing_takes_no_numbers(dataset: HeldDataset) -> None:
    dataset.write(rows((10, 1.0)), "upsert")
    with pytest.raises(Exception, match="more than once"):
        dataset.write(rows((50, 1.0), (50, 1.0)), "upsert")
    dataset.write(rows((50, 1.0)), "upsert")
    assert identity(dataset)[50] == (4, 4, 5)


def test_places_are_given_in_the_order_of_a_long_input(arm: ArmUnderTest) -> None:
    """Several batches of it, of which every third row is there already."""
    dataset = arm.create({"id": "long", "v": "double"}, ["id"])
    count = 200_000
    dataset.write({"id": number, "v": 0.0} for number in range(0, count, 3))
    held = dataset.record.row_count
    dataset.write(({"id": number, "v": 1.0} for number in range(count - 1, -1, -1)), "upsert")
    read = dataset.to_arrow(identity=True).sort_by("__row_index")
    assert read["__row_index"].to_pylist() == list(range(count))
    assert read["__row_id"].to_pylist() == list(range(count))
    assert read["id"].to_pylist()[:held] == list(range(0, count, 3))
    assert read["id"].to_pylist()[held:] == [number for number in range(count - 1, -1, -1) if number % 3]
    assert set(read["v"].to_pylist()) == {1.0}
    assert set(read["__version"].to_pylist()) == {2}
