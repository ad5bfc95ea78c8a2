"""Mirrors: what is written to one arm is on the other, too, row by row; and what a mirror missed gets there later."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lakeward
from conformance.test_keyed_machine import comparable
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ArmNotCurrent, LakewardError
from lakeward.migration.comparing import compare
from lakeward.storage.verbs import VERBS
from lakeward.testing import AtStep
from support.arms import ArmUnderTest, HeldDataset
from support.keyed_batches import Row, batches, shapes

MODES = {"dual": ("postgres", "iceberg"), "iceberg_dual": ("iceberg", "postgres")}
COLUMNS = {"id": "long", "note": "string"}


def mirrored(workspace: lakeward.Workspace, mode: str, columns: Any = None, key: Any = ("id",)) -> HeldDataset:
    """Return a new dataset that is mirrored from its first write on."""
    held = ArmUnderTest(workspace, MODES[mode][0]).create(columns or COLUMNS, key)
    workspace.replication.reroute(held.record, mode)
    return held


def assert_equal(held: HeldDataset) -> None:
    """Check that both arms hold the head, with the same rows, identity and digest."""
    workspace, record = held.workspace, held.record
    parity = workspace.storage.verify(record)
    assert set(parity.digests) == {"postgres", "iceberg"}
    rows = {arm: held.to_arrow(arm, identity=True).sort_by("__row_index").to_pylist() for arm in parity.digests}
    assert comparable(rows["postgres"]) == comparable(rows["iceberg"])
    assert len(rows["iceberg"]) == record.row_count
    assert held.leftovers() == {}


def write(held: HeldDataset, rows: object, mode: str = "append", allow_empty: bool = False) -> lakeward.WriteResult:
    """Write through the facade, as everybody does."""
    output = held.output(rows, mode, allow_empty)
    return held.workspace.storage.build([output], writer="conformance").transactions[0]


def numbered(*ids: int, note: str = "a") -> list[Row]:
    return [{"id": id_, "note": note} for id_ in ids]


@pytest.mark.parametrize("mode", MODES)
@settings(max_examples=2)
@given(data=st.data(), shape=shapes())
def test_any_writes_are_on_both_arms(shared: lakeward.Workspace, mode: str, data: st.DataObject, shape: Any) -> None:
    held = mirrored(shared, mode, shape.columns, shape.primary_key)
    for verb in data.draw(st.lists(st.sampled_from(sorted(set(VERBS) - {"append"})), min_size=3, max_size=6)):
        before = held.version
        result = write(held, data.draw(batches(shape, verb)), verb, allow_empty=True)
        if not held.version:
            continue
        assert_equal(held)
        if result.committed and before:
            told = {arm: held.changes(before, arm=arm) for arm in MODES[mode]}
            assert sorted(map(str, told["postgres"])) == sorted(map(str, told["iceberg"]))


@pytest.mark.parametrize("mode", MODES)
def test_appends_without_a_key_and_old_versions(shared: lakeward.Workspace, mode: str) -> None:
    held = mirrored(shared, mode, key=())
    versions = {}
    for number in range(3):
        write(held, numbered(number, number))
        versions[held.version] = [number_ for number_ in range(number + 1) for _ in range(2)]
        assert_equal(held)
    for (version, ids), arm in itertools.product(versions.items(), MODES[mode]):
        assert sorted(held.to_arrow(arm, version=version)["id"].to_pylist()) == ids
        assert sorted(held.to_arrow(arm, since=version)["id"].to_pylist()) == versions[held.version][len(ids) :]


@pytest.fixture
def failing(shared_url: str, tmp_path_factory: pytest.TempPathFactory, shared: lakeward.Workspace) -> Iterator[Any]:
    """Opens the shared workspace with a fault, for a write that something happens to."""

    def run(held: HeldDataset, point: str, action: Callable[[], None], rows: object, mode: str) -> Any:
        warehouse = shared.settings.values.warehouse
        faults = AtStep(point, action)
        with lakeward.open(database_url=shared_url, warehouse=warehouse, faults=faults) as other:
            record = other.tree.by_id(held.created.id)
            result = other.storage.write(record, rows, verb=mode, writer="conformance")
        assert point in faults.seen
        return result

    yield run


def broken() -> None:
    raise RuntimeError("the mirror is out of order")


@pytest.mark.parametrize("point", ["mirror", "mirror:prepared"])
@pytest.mark.parametrize("mode", MODES)
def test_a_mirror_that_fails_never_fails_the_write(
    shared: lakeward.Workspace, failing: Any, mode: str, point: str
) -> None:
    held = mirrored(shared, mode)
    mirror = MODES[mode][1]
    write(held, numbered(*range(10)))
    result = failing(held, point, broken, numbered(3, 4, 11, note="b"), "upsert")
    assert (result.rows_updated, result.rows_added) == (2, 1)
    lag = shared.replication.lag(held.record, mirror)
    assert (lag.holds, lag.head, lag.versions, lag.rows) == (2, 3, 1, 3)
    assert lag.error == "RuntimeError: the mirror is out of order"
    assert held.leftovers() == {}
    # Later writes leave it behind, and say so; it is asked by name in vain, and everybody else is served.
    write(held, [{"id": 0}], "delete")
    lag = shared.replication.lag(held.record, mirror)
    assert (lag.versions, lag.rows, lag.current) == (2, 4, False)
    with pytest.raises(ArmNotCurrent):
        held.to_arrow(mirror)
    with pytest.raises(ArmNotCurrent):
        shared.replication.reroute(held.record, {"dual": "iceberg_dual", "iceberg_dual": "dual"}[mode])
    head, epoch = held.version, held.record.route.epoch
    name = held.created.name
    assert [each.behind for each in shared.status() if each.name == name] == [lag]
    assert shared.maintain(name, older_than=60, dry_run=True).mirrored == [lag]
    assert shared.replication.lag(held.record, mirror) == lag
    assert shared.maintain(name, older_than=60).mirrored == [lag]
    assert (held.version, held.record.route.epoch) == (head, epoch)
    assert shared.replication.lag(held.record, mirror).current
    assert_equal(held)
    # And from there on it is mirrored again.
    write(held, numbered(20))
    assert_equal(held)


@pytest.mark.parametrize(("source", "target"), [("postgres", "iceberg"), ("iceberg", "postgres")])
def test_a_backfill_lets_writers_and_maintenance_go_on(shared: lakeward.Workspace, source: str, target: str) -> None:
    held = ArmUnderTest(shared, source).create(COLUMNS, ["id"])
    write(held, numbered(*range(100)))
    write(held, numbered(*range(50, 60), note="b"), "upsert")
    begun, go_on = threading.Event(), threading.Event()

    def watched(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        def batches_() -> Iterator[pa.RecordBatch]:
            for batch in rows:
                yield batch
                begun.set()
                assert go_on.wait(30)

        return pa.RecordBatchReader.from_batches(rows.schema, batches_())

    with ThreadPoolExecutor(1) as pool:
        backfill = pool.submit(shared.replication.backfill, held.record, target, watched=watched)
        assert begun.wait(30)
        write(held, numbered(1, 200, note="c"), "upsert")
        report = shared.maintain(held.created.name, older_than=60)
        assert report.failures == []
        go_on.set()
        backfill.result(60)
    lag = shared.replication.lag(held.record, target)
    assert (lag.holds, lag.waits, lag.head, lag.versions) == (None, 2, 4, 1)
    compare(shared.comparisons._rooms, held.record, target)
    lag = shared.replication.lag(held.record, target)
    assert (lag.holds, lag.waits, lag.head, lag.versions) == (2, None, 4, 1)
    assert sorted(held.to_arrow(target, version=2)["id"].to_pylist()) == list(range(100))
    shared.replication.catch_up(held.record, target)
    assert_equal(held)
    assert held.to_arrow(target, since=2).num_rows == 2


def test_a_change_of_the_route_waits_for_the_writer_that_is_at_work(shared: lakeward.Workspace) -> None:
    """And the next writer waits for it: neither is ended, and none follows the old route after it."""
    held = mirrored(shared, "dual")
    write(held, numbered(1))
    order: list[str] = []
    inside, go_on = threading.Event(), threading.Event()

    def slow() -> Iterator[Row]:
        yield from numbered(2)
        inside.set()
        assert go_on.wait(30)
        order.append("first write")

    def switch() -> None:
        shared.replication.reroute(held.record, "iceberg_dual", checked=lambda _: order.append("switch"))

    threads = [threading.Thread(target=write, args=(held, slow())), threading.Thread(target=switch)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    go_on.set()
    for thread in threads:
        thread.join(60)
    write(held, numbered(3))
    assert order == ["first write", "switch"]
    newest, *_ = shared.dataset(held.created.name).history()
    assert (newest.arm, newest.version) == ("iceberg", held.version)
    assert_equal(held)


def refused(_: DatasetRecord) -> None:
    raise LakewardError("not now")


def test_a_refused_change_of_the_route_leaves_nothing(shared: lakeward.Workspace) -> None:
    held = mirrored(shared, "dual")
    write(held, numbered(1))
    before = held.record.route
    with pytest.raises(LakewardError, match="not now"):
        shared.replication.reroute(held.record, "iceberg_dual", checked=refused)
    assert held.record.route == before
    write(held, numbered(2))
    assert_equal(held)
