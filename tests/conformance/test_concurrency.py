"""Several writers and readers of one dataset at once, on every arm: all commit in some order, and none is lost."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import lakeward
from lakeward.errors import ConflictError
from support.arms import ArmUnderTest

WRITERS = 4
WRITES = 4


def test_appends_of_several_threads_all_commit(arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long", "writer": "int"})

    def write(writer: int) -> list[int]:
        return [
            dataset.write([{"id": 100 * number + row, "writer": writer} for row in range(3)]).version
            for number in range(WRITES)
        ]

    with ThreadPoolExecutor(WRITERS) as pool:
        versions = [version for each in pool.map(write, range(WRITERS)) for version in each]
    assert sorted(versions) == list(range(1, WRITERS * WRITES + 1))
    rows = dataset.rows(identity=True)
    assert [row["__row_index"] for row in rows] == list(range(3 * WRITERS * WRITES))
    assert len({row["__row_id"] for row in rows}) == len(rows)
    assert {(row["id"], row["writer"]) for row in rows} == {
        (100 * number + row, writer) for writer in range(WRITERS) for number in range(WRITES) for row in range(3)
    }
    assert dataset.leftovers() == {}


def test_readers_see_whole_versions_while_others_replace(arm: ArmUnderTest) -> None:
    dataset = arm.create({"version": "long"})
    dataset.write([{"version": 1}] * 5, "replace")
    stop = threading.Event()

    def read() -> int:
        seen = 0
        while not stop.is_set() or seen == 0:
            values = dataset.to_arrow().column("version").to_pylist()
            assert len(values) == 5
            assert len(set(values)) == 1, "rows of two versions in one answer"
            seen += 1
        return seen

    with ThreadPoolExecutor(2) as pool:
        readers = [pool.submit(read) for _ in range(2)]
        for number in range(2, 8):
            dataset.write([{"version": number}] * 5, "replace")
        stop.set()
        assert all(reader.result() > 0 for reader in readers)


def test_builds_that_share_datasets_in_another_order_do_not_wait_in_a_circle(shared: lakeward.Workspace) -> None:
    first = ArmUnderTest(shared, "postgres").create({"id": "long"})
    second = ArmUnderTest(shared, "iceberg").create({"id": "long"})

    def build(forwards: bool) -> None:
        outputs = [first.output([{"id": 1}]), second.output([{"id": 2}])]
        shared.storage.build(outputs if forwards else outputs[::-1], writer="conformance")

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(build, [True, False] * 4))
    assert (first.record.row_count, second.record.row_count) == (8, 8)


def test_a_build_of_two_outputs_is_seen_as_one(shared: lakeward.Workspace) -> None:
    """Whoever pins both heads in one statement sees both outputs of a build, or neither."""
    first = ArmUnderTest(shared, "postgres").create({"id": "long"})
    second = ArmUnderTest(shared, "iceberg").create({"id": "long"})
    stop = threading.Event()

    def watch() -> int:
        looks = 0
        while not stop.is_set():
            heads = shared.ledger.heads([first.created.id, second.created.id])
            assert len(set(heads.values())) == 1, heads
            looks += 1
        return looks

    with ThreadPoolExecutor(1) as pool:
        watching = pool.submit(watch)
        for number in range(5):
            shared.storage.build(
                [first.output([{"id": number}]), second.output([{"id": number}])], writer="conformance"
            )
        stop.set()
        assert watching.result() > 5


def test_a_failing_output_takes_the_others_with_it(shared: lakeward.Workspace) -> None:
    first = ArmUnderTest(shared, "postgres").create({"id": "long"})
    second = ArmUnderTest(shared, "iceberg").create({"id": "long"})
    third = ArmUnderTest(shared, "postgres").create({"id": "long"})
    for outputs in (
        [first.output([{"id": 1}]), second.output([{"id": 2}]), third.output([{"id": "x"}])],
        [first.output([{"id": "x"}]), second.output([{"id": 2}]), third.output([{"id": 1}])],
    ):
        with pytest.raises(lakeward.errors.ValueRefused):
            shared.storage.build(outputs, writer="conformance")
        for dataset in (first, second, third):
            assert (dataset.version, dataset.leftovers()) == (0, {})


def test_an_output_without_rows_leaves_the_others(shared: lakeward.Workspace) -> None:
    first = ArmUnderTest(shared, "postgres").create({"id": "long"})
    second = ArmUnderTest(shared, "iceberg").create({"id": "long"})
    result = shared.storage.build([first.output([]), second.output([{"id": 1}])], writer="conformance")
    assert [transaction.committed for transaction in result.transactions] == [False, True]
    assert (first.version, second.version) == (0, 1)
    history = [each for each in shared.transactions() if each.dataset == first.created.name]
    assert [each.status for each in history] == ["aborted"]


def test_a_slot_that_stays_taken_is_a_named_timeout(shared_url: str, arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long"})
    warehouse = arm.workspace.settings.values.warehouse
    assert warehouse is not None
    entered, leave = threading.Event(), threading.Event()

    def hold(prepared: object) -> None:
        entered.set()
        leave.wait(30)

    with ThreadPoolExecutor(1) as pool:
        holder = pool.submit(dataset.write, [{"id": 1}], audit=hold)
        assert entered.wait(30)
        try:
            slots = arm.workspace.storage.protocol._slots
            waited, slots._timeout_seconds = slots._timeout_seconds, 0.2
            with pytest.raises(ConflictError, match="is being written by") as caught:
                dataset.write([{"id": 2}])
            slots._timeout_seconds = waited
        finally:
            leave.set()
        assert caught.value.exit_code == 6
        assert holder.result().committed
    assert [row["id"] for row in dataset.rows()] == [1]
