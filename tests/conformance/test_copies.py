"""A copy to another arm keeps rows, identity and digest; both arms can be compared and each catches a difference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest

import lakeward
from lakeward.control.routes import ARM_MODES
from lakeward.errors import ArmNotCurrent, ParityMismatch, UnknownObject, UsageError
from lakeward.storage import copying
from lakeward.testing import AtStep
from lakeward.types.digest import EMPTY
from support.arms import ArmUnderTest, HeldDataset, iceberg_table

PAIRS = [("postgres", "iceberg"), ("iceberg", "postgres"), ("postgres", "memory"), ("iceberg", "memory")]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]} to {pair[1]}")
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """From which arm to which."""
    source, target = request.param
    return source, target


@pytest.fixture
def dataset(shared: lakeward.Workspace, pair: tuple[str, str]) -> HeldDataset:
    return ArmUnderTest(shared, pair[0]).create(
        {"id": "long", "two words": "string", "s": 'struct<"a b": int>'}, ["id"]
    )


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "two words": f"w{number}", "s": {"a b": number} if number % 2 else None} for number in ids]


def copy(dataset: HeldDataset, to: str) -> lakeward.WriteResult:
    return dataset.workspace.storage.copy(dataset.record, to)


def verify(dataset: HeldDataset) -> dict[str, Any]:
    return dataset.workspace.storage.verify(dataset.record).digests


def test_a_copy_keeps_rows_identity_and_digest(dataset: HeldDataset, pair: tuple[str, str]) -> None:
    source, target = pair
    dataset.write(rows(1, 2, 3))
    dataset.write(rows(4))
    before = dataset.rows(identity=True)
    result = copy(dataset, target)
    assert (result.committed, result.version, result.rows_unchanged, result.rows_added, result.row_count) == (
        True,
        3,
        4,
        0,
        4,
    )
    assert dataset.rows(identity=True, arm=target) == before
    assert dataset.rows(identity=True, arm=source) == before
    assert dataset.rows(since=1, arm=target) == dataset.rows(since=1, arm=source) == rows(4)
    assert dataset.rows(since=3, arm=target) == []
    assert dataset.record.arm == source, "a copy changes no route"
    digests = verify(dataset)
    assert set(digests) == {source, target}
    assert len(set(digests.values())) == 1
    assert dataset.rows(version=1) == rows(1, 2, 3)
    with pytest.raises(ArmNotCurrent):
        dataset.to_arrow(version=2, arm=target)


@pytest.mark.parametrize(("source", "target"), PAIRS[:2])
def test_writers_go_on_while_a_large_dataset_is_copied(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    """Of which only what they write meanwhile is brought while they wait; and again, on top of the copy before."""
    monkeypatch.setattr(copying, "AT_ONCE_ROWS", 2)
    dataset = ArmUnderTest(shared, source).create({"id": "long", "note": "string"}, ["id"])
    dataset.write([{"id": number, "note": "a"} for number in range(9)])
    written: list[int] = []

    def meanwhile(read: int) -> None:
        written.append(dataset.write([{"id": 0, "note": "b"}, {"id": 90, "note": "c"}], "upsert").version)

    assert shared.storage.copy(dataset.record, target, progress=meanwhile).row_count == 10 and len(written) == 1
    assert dataset.rows(identity=True, arm=target) == dataset.rows(identity=True, arm=source)
    dataset.write([{"id": 5}], "delete")
    done = copy(dataset, target)
    assert (done.committed, done.verb, done.rows_unchanged, done.version) == (True, "copy", 9, dataset.version)
    assert dataset.rows(identity=True, arm=target) == dataset.rows(identity=True, arm=source)
    assert len(set(verify(dataset).values())) == 1 and len(verify(dataset)) == 2


def test_a_large_copy_that_is_not_equal_any_more_is_made_anew(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "AT_ONCE_ROWS", 1)
    dataset = ArmUnderTest(shared, "iceberg").create({"id": "long", "note": "string"}, ["id"])
    dataset.write([{"id": number, "note": "a"} for number in range(9)])
    copy(dataset, "postgres")
    with psycopg.connect(shared.database.libpq_url) as connection:
        connection.execute(
            "DELETE FROM lakeward.dataset_rows WHERE dataset_id = %s AND row_id = 3", [dataset.created.id]
        )
    dataset.write([{"id": 10, "note": "b"}])
    assert copy(dataset, "postgres").committed
    assert dataset.rows(identity=True, arm="postgres") == dataset.rows(identity=True, arm="iceberg")


@pytest.mark.parametrize(("source", "target"), PAIRS[:2])
def test_a_large_copy_whose_rows_somebody_removes_before_they_are_compared_is_made_anew(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch, source: str, target: str
) -> None:
    """As who cancels a flip does, between two steps of another process."""
    monkeypatch.setattr(copying, "AT_ONCE_ROWS", 1)
    dataset = ArmUnderTest(shared, source).create({"id": "long", "note": "string"}, ["id"])
    dataset.write([{"id": number, "note": "a"} for number in range(9)])
    backfill = shared.replication.backfill

    def removed_behind(*given: Any, **named: Any) -> Any:
        done = backfill(*given, **named)
        shared.replication.drain(dataset.record, target)
        return done

    monkeypatch.setattr(shared.replication, "backfill", removed_behind)
    assert copy(dataset, target).committed
    assert dataset.rows(identity=True, arm=target) == dataset.rows(identity=True, arm=source)
    assert len(set(verify(dataset).values())) == 1 and len(verify(dataset)) == 2
    assert dataset.leftovers() == {}


def test_a_second_copy_does_nothing(dataset: HeldDataset, pair: tuple[str, str]) -> None:
    dataset.write(rows(1))
    copy(dataset, pair[1])
    again = copy(dataset, pair[1])
    assert (again.committed, again.version, again.row_count) == (False, 2, 1)
    assert dataset.version == 2
    assert not copy(dataset, pair[0]).committed


def test_further_writes_leave_the_copy_behind_until_it_is_made_again(
    dataset: HeldDataset, pair: tuple[str, str]
) -> None:
    source, target = pair
    dataset.write(rows(1))
    copy(dataset, target)
    dataset.write(rows(2))
    with pytest.raises(ArmNotCurrent, match=f"that arm holds version 2, version {dataset.version} was asked for"):
        dataset.to_arrow(arm=target)
    assert set(verify(dataset)) == {source}
    assert copy(dataset, target).committed
    assert dataset.rows(identity=True, arm=target) == dataset.rows(identity=True, arm=source)
    dataset.write(rows(7), "replace")
    copy(dataset, target)
    assert dataset.rows(identity=True, arm=target) == dataset.rows(identity=True, arm=source)
    assert len(set(verify(dataset).values())) == 1
    assert dataset.rows(arm=target, version=2) == rows(1), "earlier copies stay readable"


def test_ids_go_on_after_a_copy(dataset: HeldDataset, pair: tuple[str, str]) -> None:
    dataset.write(rows(1, 2))
    copy(dataset, pair[1])
    dataset.write(rows(3))
    assert [(row["__row_index"], row["__row_id"], row["__version"]) for row in dataset.rows(identity=True)] == [
        (0, 0, 1),
        (1, 1, 1),
        (2, 2, 3),
    ]


def test_a_copy_of_no_rows_is_a_copy(dataset: HeldDataset, pair: tuple[str, str]) -> None:
    dataset.write(rows(1))
    dataset.write([], "replace", allow_empty=True)
    assert copy(dataset, pair[1]).committed
    assert dataset.rows(arm=pair[1]) == []
    assert set(verify(dataset).values()) == {EMPTY}


def test_a_dataset_without_a_version_has_nothing_to_copy(dataset: HeldDataset, pair: tuple[str, str]) -> None:
    with pytest.raises(UsageError, match="no version to copy"):
        copy(dataset, pair[1])
    dataset.write(rows(1))
    with pytest.raises(UnknownObject, match="unknown arm 'tape'"):
        copy(dataset, "tape")


def test_a_row_changed_behind_our_back_is_found(shared: lakeward.Workspace) -> None:
    for source in ARM_MODES:
        dataset = ArmUnderTest(shared, source).create({"id": "long"})
        dataset.write([{"id": 1}, {"id": 2}])
        copy(dataset, "iceberg" if source == "postgres" else "postgres")
        with shared.database.driver() as connection, connection.transaction():
            connection.execute(
                "UPDATE lakeward.dataset_rows SET data = '{\"id\": 3}' WHERE dataset_id = %s AND row_index = 1",
                (dataset.created.id,),
            )
        with pytest.raises(ParityMismatch, match=dataset.created.name) as caught:
            verify(dataset)
        assert caught.value.exit_code == 4
        assert set(caught.value.fields["digests"]) == {"postgres", "iceberg"}  # type: ignore[call-overload]


def test_each_copy_to_iceberg_is_one_snapshot(shared: lakeward.Workspace) -> None:
    dataset = ArmUnderTest(shared, "postgres").create({"id": "long"})
    for number in range(3):
        dataset.write([{"id": number}])
        copy(dataset, "iceberg")
    table = iceberg_table(shared, dataset.table)
    assert [snapshot.summary["lakeward.version"] for snapshot in table.metadata.snapshots] == ["0", "2", "4", "6"]
    assert [row["id"] for row in table.scan().to_arrow().to_pylist()] == [0, 1, 2]


def test_a_copy_that_came_out_different_is_refused_and_leaves_nothing(shared_url: str, new_home: Path) -> None:
    """A row is changed behind our back after the copy has read it and before its audit."""

    def tamper() -> None:
        with psycopg.connect(shared_url) as connection:
            connection.execute(
                "UPDATE lakeward.dataset_rows SET data = '{\"id\": 3}' WHERE dataset_id = %s", (dataset.created.id,)
            )

    faults = AtStep("prepare:committed", tamper)
    with lakeward.open(new_home, database_url=shared_url, warehouse=new_home / "warehouse", faults=faults) as workspace:
        dataset = ArmUnderTest(workspace, "postgres").create({"id": "long"})
        dataset.write([{"id": 1}])
        with pytest.raises(ParityMismatch, match="version 1: the arms differ"):
            copy(dataset, "iceberg")
        assert (dataset.version, dataset.leftovers()) == (1, {})
        assert copy(dataset, "iceberg").version == 3
        assert len(set(verify(dataset).values())) == 1
