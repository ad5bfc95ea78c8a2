"""Keyed writes and copies: what was written by key is the same on another arm, and goes on right there."""

from __future__ import annotations

from typing import Any

import pytest

import lakeward
from conformance.test_copies import PAIRS
from lakeward.storage.verbs import KEYED
from support.arms import ArmUnderTest, HeldDataset
from support.keyed import assert_digest_kept

COLUMNS = {"id": "long", "k": "string", "note": "string", "s": "struct<x: double>"}


def rows(*given: tuple[int, str]) -> list[dict[str, Any]]:
    return [
        {"id": id_, "k": f"k{id_}", "note": note, "s": {"x": float("nan")} if id_ % 2 else None} for id_, note in given
    ]


def change(operation: str, id_: int, note: str = "") -> dict[str, Any]:
    return {**rows((id_, note))[0], "__op": operation}


def key(*ids: int) -> list[dict[str, Any]]:
    return [{"id": id_, "k": f"k{id_}"} for id_ in ids]


@pytest.fixture(params=PAIRS, ids=lambda pair: f"{pair[0]} to {pair[1]}")
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """From which arm to which."""
    source, target = request.param
    return source, target


@pytest.fixture
def dataset(shared: lakeward.Workspace, pair: tuple[str, str]) -> HeldDataset:
    """Written by every keyed verb."""
    made = ArmUnderTest(shared, pair[0]).create(COLUMNS, ["k", "id"])
    made.write(rows(*((number, "old") for number in range(1, 9))))
    write_by_every_verb(made, 1)
    return made


def write_by_every_verb(dataset: HeldDataset, turn: int) -> None:
    """Change rows of keys from 1 to 8, and add some, by each keyed verb; six rows are left of before."""
    first = 10 * turn
    for given, verb in (
        (rows((first, "new"), (1, "other")), "append_new"),
        (rows((2, f"upsert {turn}"), (first + 1, "new"), (3, "old")), "upsert"),
        ([change("update", 4, f"changes {turn}"), change("delete", first + 1), change("insert", first + 2)], "changes"),
        (key(first, 99), "delete"),
        (rows(*((number, f"mirror {turn}") for number in (2, 4, 6, 8, first + 3)), (1, "old"), (3, "old")), "mirror"),
    ):
        result = dataset.write(given, verb)
        assert result.committed, verb
        assert_digest_kept(dataset)


def copied(dataset: HeldDataset, arm: str) -> HeldDataset:
    """Copy a dataset and return it as it is there."""
    assert dataset.workspace.storage.copy(dataset.record, arm).committed
    return HeldDataset(dataset.workspace, arm, dataset.created)


def assert_same(left: HeldDataset, right: HeldDataset) -> None:
    assert repr(left.rows(identity=True)) == repr(right.rows(identity=True))
    digests = left.workspace.storage.verify(left.record).digests
    assert set(digests) == {left.arm, right.arm}
    assert len(set(digests.values())) == 1


def test_every_keyed_verb_before_and_after_a_copy(dataset: HeldDataset, pair: tuple[str, str]) -> None:
    there = copied(dataset, pair[1])
    assert_same(dataset, there)
    before, version = dataset.rows(identity=True), dataset.version
    write_by_every_verb(there, 2)
    assert repr(dataset.rows(identity=True, version=version)) == repr(before)
    assert repr(there.rows(identity=True, version=version)) == repr(before)
    found = {row["id"]: (row["note"], row["__row_id"], row["__row_index"]) for row in there.rows(identity=True)}
    known = {row["id"]: row for row in before}
    assert set(found) == {1, 2, 3, 4, 6, 8, 23}
    for id_ in (1, 2, 3, 4, 6, 8):
        place = (known[id_]["__row_id"], known[id_]["__row_index"])
        assert found[id_] == ("old" if id_ in (1, 3) else "mirror 2", *place)
    assert found[23][1] > max(row["__row_id"] for row in before)
    there.workspace.storage.verify(there.record)


def test_u03_a_key_twice_is_found_in_a_copy(dataset: HeldDataset, pair: tuple[str, str]) -> None:
    dataset.write(rows((1, "twice")))
    there = copied(dataset, pair[1])
    before = there.rows(identity=True)
    for verb in KEYED:
        given: list[dict[str, Any]] = rows((1, "x"))
        if verb == "delete":
            given = key(1)
        elif verb == "changes":
            given = [change("update", 1)]
        with pytest.raises(lakeward.errors.DuplicateKey) as caught:
            there.write(given, verb)
        assert caught.value.fields["where"] == "dataset"
    assert repr(there.rows(identity=True)) == repr(before)


@pytest.mark.parametrize("names", [("postgres", "iceberg"), ("iceberg", "postgres")], ids=str)
def test_there_and_back_again(shared: lakeward.Workspace, names: tuple[str, str]) -> None:
    here, there = names
    dataset = ArmUnderTest(shared, here).create(COLUMNS, ["k", "id"])
    dataset.write(rows(*((number, "old") for number in range(1, 9))), "upsert")
    away = copied(dataset, there)
    write_by_every_verb(away, 1)
    assert away.workspace.storage.protocol.run([_copy_of(away)], writer="test", kind="copy", arm=here)
    assert_same(dataset, away)
    write_by_every_verb(dataset, 2)
    assert {row["id"] for row in dataset.rows()} == {1, 2, 3, 4, 6, 8, 23}
    assert_digest_kept(dataset, known=True)


def _copy_of(dataset: HeldDataset) -> Any:
    """Return what a copy from an arm that is not the primary one writes."""
    table = dataset.to_arrow(identity=True)
    output = dataset.output([], "copy", allow_empty=True)
    return type(output)(output.dataset, "copy", lambda: table.to_reader(), allow_empty=True)
