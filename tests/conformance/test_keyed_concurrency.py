"""Several writers by key at once: each matches what the one before it left, so no key is ever there twice."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.testing import InMemoryArm
from support.arms import ArmUnderTest, HeldDataset

WRITERS = 4


def row(id_: int, value: int) -> dict[str, Any]:
    return {"id": id_, "v": value}


@pytest.fixture
def other(shared: lakeward.Workspace, shared_url: str, tmp_path: Path) -> Iterator[lakeward.Workspace]:
    """The workspace as another process has it open."""
    warehouse = shared.settings.values.warehouse
    assert warehouse is not None
    with lakeward.open(
        tmp_path / "home", database_url=shared_url, warehouse=warehouse, extra_arms=[InMemoryArm]
    ) as workspace:
        yield workspace


@pytest.mark.parametrize("verbs", [("upsert", "upsert"), ("append_new", "upsert"), ("mirror", "upsert")], ids=str)
def test_c04_two_handles_upsert_one_new_and_one_old_key_from_one_base(
    lasting: ArmUnderTest, other: lakeward.Workspace, verbs: tuple[str, str]
) -> None:
    created = lasting.create({"id": "long", "v": "long"}, ["id"])
    created.write([row(1, 0)])
    first = lasting.workspace.dataset(created.created.name)
    second = other.dataset(created.created.name)
    assert first.to_arrow().to_pylist() == second.to_arrow().to_pylist() == [row(1, 0)]
    first.write([row(9, 1), row(1, 1)], mode=verbs[0])
    result = second.write([row(9, 2), row(1, 2)], mode=verbs[1])
    assert (result.rows_added, result.rows_updated, result.row_count) == (0, 2, 2)
    assert created.rows() == [row(1, 2), row(9, 2)]
    assert first.to_arrow().num_rows == 2
    assert created.leftovers() == {}


def test_c04_a_handle_that_has_not_looked_since_replaces_appends_and_upserts(
    lasting: ArmUnderTest, other: lakeward.Workspace
) -> None:
    created = lasting.create({"id": "long", "v": "long"}, ["id"])
    created.write([row(1, 0)])
    first = lasting.workspace.dataset(created.created.name)
    second = other.dataset(created.created.name)
    first.write([row(2, 1)])
    second.write([row(3, 2)], mode="replace")
    assert first.to_arrow().to_pylist() == [row(3, 2)]
    result = first.write([row(1, 3), row(3, 3)], mode="upsert")
    assert (result.rows_added, result.rows_updated) == (1, 1)
    second.write([row(1, 4)], mode="upsert")
    assert created.rows() == [row(3, 3), row(1, 4)]
    first.write([{"id": 3}], mode="delete")
    assert second.write([row(3, 5)], mode="append_new").rows_added == 1
    assert created.rows() == [row(1, 4), row(3, 5)]


def test_c04_a_write_that_waited_matches_what_the_other_one_left(arm: ArmUnderTest) -> None:
    """The second begins while the first is prepared and not decided: its base is that of before."""
    dataset = arm.create({"id": "long", "v": "long"}, ["id"])
    dataset.write([row(1, 0)])
    entered, leave = threading.Event(), threading.Event()

    def hold(prepared: object) -> None:
        entered.set()
        leave.wait(30)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(dataset.write, [row(9, 1), row(1, 1)], "upsert", audit=hold)
        assert entered.wait(30), first.result()
        second = pool.submit(dataset.write, [row(9, 2), row(1, 2)], "upsert")
        leave.set()
        assert (first.result().rows_added, first.result().rows_updated) == (1, 1)
        assert (second.result().rows_added, second.result().rows_updated) == (0, 2)
    assert dataset.rows() == [row(1, 2), row(9, 2)]
    assert dataset.leftovers() == {}


def test_c04_many_threads_write_the_same_keys(arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long", "v": "long"}, ["id"])

    def write(writer: int) -> int:
        added = 0
        for turn in range(4):
            value = 10 * writer + turn
            if turn == 2:
                result = dataset.write([{**row(id_, value), "__op": "update"} for id_ in range(5)], "changes")
            else:
                result = dataset.write([row(id_, value) for id_ in range(5)], "upsert")
            added += result.rows_added
        return added

    with ThreadPoolExecutor(WRITERS) as pool:
        added = sum(pool.map(write, range(WRITERS)))
    assert added == 5, "each key was added once"
    found = dataset.rows(identity=True)
    assert sorted(each["id"] for each in found) == list(range(5))
    assert [each["__row_id"] for each in found] == [each["__row_index"] for each in found] == list(range(5))
    assert len({each["v"] for each in found}) == 1, "the last one wrote them all"
    assert dataset.leftovers() == {}


def test_readers_see_whole_keyed_versions(arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long", "v": "long"}, ["id"])
    dataset.write([row(id_, 0) for id_ in range(5)], "upsert")
    stop = threading.Event()

    def read() -> int:
        looks = 0
        while not stop.is_set() or looks == 0:
            found = dataset.to_arrow().to_pylist()
            assert len(found) == 5
            assert len({each["v"] for each in found}) == 1, "rows of two versions in one answer"
            looks += 1
        return looks

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for value in range(1, 8):
            dataset.write([row(id_, value) for id_ in range(5)], ("upsert", "mirror")[value % 2])
        stop.set()
        assert all(reader.result() > 0 for reader in readers)


def test_one_build_writes_two_arms_by_key_together(shared: lakeward.Workspace) -> None:
    first = ArmUnderTest(shared, "postgres").create({"id": "long", "v": "long"}, ["id"])
    second = ArmUnderTest(shared, "iceberg").create({"id": "long", "v": "long"}, ["id"])
    for held in (first, second):
        held.write([row(1, 0)])

    def build(rows_of_second: list[dict[str, Any]]) -> Any:
        outputs = [first.output([row(1, 1), row(2, 1)], "upsert"), second.output(rows_of_second, "mirror")]
        return shared.storage.build(outputs, writer="conformance")

    with pytest.raises(lakeward.errors.DuplicateKey):
        build([row(3, 1), row(3, 1)])
    assert (_rows(first), _rows(second)) == ([row(1, 0)], [row(1, 0)])
    done = build([row(3, 1)])
    assert [each.committed for each in done.transactions] == [True, True]
    assert (_rows(first), _rows(second)) == ([row(1, 1), row(2, 1)], [row(3, 1)])
    again = build([row(3, 1)])
    assert [each.committed for each in again.transactions] == [False, False]
    one = build([row(4, 1)])
    assert [each.committed for each in one.transactions] == [False, True]


def _rows(dataset: HeldDataset) -> list[dict[str, Any]]:
    return dataset.rows()
