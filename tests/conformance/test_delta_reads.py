"""Reading what was written since a version, and what changed: the same on every arm, and as plain Python finds it."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pyarrow as pa
import pytest

from lakeward.errors import ArmNotCurrent, DuplicateKey, SchemaError, UnknownObject, UnknownVersion, UsageError
from lakeward.storage.requests import ChangesRequest
from lakeward.storage.verbs import VERBS
from support.arms import ArmUnderTest, HeldDataset
from support.changes import all_versions, expected, frozen, plain, row, writes
from support.covering import covering
from support.rounds import rounds

COLUMNS = {"id": "long", "note": "string", "tags": "list<string>"}
PAIRS = 15
SEEDS = rounds(1)
ROWS = [{"id": number, "note": f"n{number}", "tags": None} for number in range(5)]


@pytest.fixture
def dataset(arm: ArmUnderTest) -> HeldDataset:
    """Five rows at version 1."""
    made = arm.create(COLUMNS, ["id"])
    made.write(ROWS)
    return made


def told(changes: list[dict[str, Any]]) -> list[tuple[str, int, str | None]]:
    return sorted((each["__op"], each["id"], each["note"]) for each in changes)


def note(id_: int, text: str | None) -> dict[str, Any]:
    return {"id": id_, "note": text, "tags": None}


# Rows since a version -------------------------------------------------------------------------------------------------


def test_rows_since_a_version_are_those_that_it_or_a_later_one_wrote(dataset: HeldDataset) -> None:
    dataset.write([note(5, "n5")])
    dataset.write([note(1, "new"), note(2, "n2"), note(6, "n6")], "upsert")
    dataset.write([{"id": 5}], "delete")
    dataset.write([note(0, "other"), note(9, "n9")], "replace")

    def since(low: int, high: int | None = None) -> list[int]:
        return sorted(dataset.to_arrow(since=low, version=high, columns=["id"])["id"].to_pylist())

    assert since(0, 1) == [0, 1, 2, 3, 4]
    assert since(1, 2) == [5]
    # A row that an upsert left as it was keeps its version.
    assert since(1, 3) == [1, 5, 6]
    assert since(2, 3) == [1, 6]
    assert since(1, 4) == [1, 6]
    assert since(3, 4) == []
    assert since(1) == since(4) == [0, 9]


def test_nothing_was_written_since_the_head(dataset: HeldDataset) -> None:
    assert dataset.rows(since=1) == dataset.rows(since=1, version=1) == []
    assert dataset.rows(since=0) == ROWS
    assert dataset.changes(1) == dataset.changes(1, 1) == []


@covering("since", "arm")
@pytest.mark.parametrize(
    ("since", "version", "why"),
    [
        (-1, None, "negative"),
        (2, 1, "later than version 1"),
        (99, None, "no (committed )?version 99"),
        ("1", None, "since is '1', and should be a version"),
        (True, None, "since is True"),
        (1.5, None, r"since is 1\.5"),
    ],
)
def test_a_since_that_no_time_lies_behind_is_refused(
    dataset: HeldDataset, since: int, version: int | None, why: str
) -> None:
    dataset.write([note(5, "n5")])
    with pytest.raises(UsageError, match=why) as caught:
        dataset.to_arrow(since=since, version=version)
    assert dataset.created.name in caught.value.message
    with pytest.raises(UsageError, match=why):
        dataset.changes(since, version)


# Changes --------------------------------------------------------------------------------------------------------------


def test_each_row_says_what_became_of_it(dataset: HeldDataset) -> None:
    dataset.write([note(1, "new"), note(2, "n2"), note(6, "n6")], "upsert")
    dataset.write([{"id": 4}], "delete")
    news = [("insert", 6, "n6"), ("update", 1, "new")]
    assert told(dataset.changes(1)) == sorted([*news, ("before", 1, "n1"), ("delete", 4, "n4")])
    assert told(dataset.changes(1, before=False)) == sorted([*news, ("delete", 4, "n4")])
    assert told(dataset.changes(1, 2)) == sorted([*news, ("before", 1, "n1")])
    assert told(dataset.changes(2, 3)) == [("delete", 4, "n4")]
    assert told(dataset.changes(0)) == sorted(("insert", each["id"], each["note"]) for each in dataset.rows())


def test_changes_are_net(dataset: HeldDataset) -> None:
    dataset.write([note(7, "n7")])
    dataset.write([note(1, "new")], "upsert")
    dataset.write([note(1, "newer"), note(7, "other")], "upsert")
    dataset.write([{"id": 7}], "delete")
    # Row 7 came and went; row 1 was updated twice.
    assert told(dataset.changes(1)) == [("before", 1, "n1"), ("update", 1, "newer")]
    # A row that has its old values again is a row that was written since.
    dataset.write([note(1, "n1")], "upsert")
    assert told(dataset.changes(1)) == [("before", 1, "n1"), ("update", 1, "n1")]
    # A key that was deleted and added again is another row.
    dataset.write([{"id": 1}], "delete")
    dataset.write([note(1, "back")], "upsert")
    assert told(dataset.changes(1)) == [("delete", 1, "n1"), ("insert", 1, "back")]
    assert told(dataset.changes(1, before=False)) == [("update", 1, "back")]


def test_a_replace_deletes_all_and_inserts_all_but_updates_by_key_where_it_is_to_be_fed(dataset: HeldDataset) -> None:
    dataset.write([note(0, "n0"), note(1, "new"), note(8, "n8")], "replace")
    inserts = [("insert", 0, "n0"), ("insert", 1, "new"), ("insert", 8, "n8")]
    assert told(dataset.changes(1)) == [*(("delete", number, f"n{number}") for number in range(5)), *inserts]
    deletes = [("delete", 2, "n2"), ("delete", 3, "n3"), ("delete", 4, "n4")]
    updates = [("update", 0, "n0"), ("update", 1, "new")]
    assert told(dataset.changes(1, before=False)) == [*deletes, ("insert", 8, "n8"), *updates]


def test_without_a_primary_key_rows_are_told_apart_by_their_row_id(arm: ArmUnderTest) -> None:
    dataset = arm.create(COLUMNS)
    dataset.write([note(1, "a"), note(1, "a")])
    dataset.write([note(1, "a")], "replace")
    expect = [("delete", 1, "a"), ("delete", 1, "a"), ("insert", 1, "a")]
    assert told(dataset.changes(1)) == told(dataset.changes(1, before=False)) == expect


def test_columns_come_as_asked_for_behind_the_operation(dataset: HeldDataset) -> None:
    dataset.write([note(1, "new")], "upsert")
    (old, new) = sorted(dataset.changes(1, columns=["tags", "id"], identity=True), key=lambda each: each["__op"])
    assert list(old) == ["__op", "tags", "id", "__row_index", "__row_id", "__created_at", "__version"]
    assert (old["__op"], old["__version"], new["__op"], new["__version"]) == ("before", 1, "update", 2)
    same = ("tags", "id", "__row_index", "__row_id", "__created_at")
    assert [old[name] for name in same] == [new[name] for name in same]
    assert dataset.changes(0, columns=["note"])[0].keys() == {"__op", "note"}


@pytest.mark.parametrize("columns", [["nosuch"], ["id", "id"], []])
def test_columns_that_there_are_not_are_refused(dataset: HeldDataset, columns: list[str]) -> None:
    with pytest.raises(SchemaError):
        dataset.changes(0, columns=columns)


def test_a_column_called_as_the_operation_is_refused_by_name(arm: ArmUnderTest) -> None:
    dataset = arm.create({"id": "long", "__OP": "string"})
    dataset.write([{"id": 1, "__OP": "x"}])
    with pytest.raises(SchemaError, match="'__OP'") as caught:
        dataset.changes(0)
    assert caught.value.fields["column"] == "__OP"
    assert dataset.changes(0, columns=["id"]) == [{"__op": "insert", "id": 1}]


def test_names_that_sql_or_the_comparison_use_are_only_names(arm: ArmUnderTest) -> None:
    names = ["file", "row", "place", "op", "m0", "id", "old_id", 'q"x', "t", "filename", "file_row_number", "position"]
    dataset = arm.create(dict.fromkeys(names, "string"), ["place", 'q"x'])
    first, second = (dict.fromkeys(names, text) for text in ("a", "b"))
    dataset.write([first, second])
    changed = {**first, "m0": "new", "op": None}
    dataset.write([changed], "upsert")
    assert sorted(dataset.changes(1), key=lambda each: each["__op"]) == [
        {"__op": "before", **first},
        {"__op": "update", **changed},
    ]


def test_versions_that_there_are_not_are_named(dataset: HeldDataset) -> None:
    dataset.write([note(5, "n5")])
    for since, version, missing in ((7, None, 7), (1, 9, 9), (7, 9, 7), (0, 9, 9)):
        with pytest.raises(UnknownVersion, match=f"no committed version {missing}") as caught:
            dataset.changes(since, version)
        assert caught.value.fields["version"] == missing
    with pytest.raises(UnknownObject, match="unknown arm"):
        dataset.changes(1, arm="nosuch")


def test_a_dataset_without_versions_has_no_changes(arm: ArmUnderTest) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    assert dataset.changes(0) == []
    with pytest.raises(UnknownVersion):
        dataset.changes(1)


# Any history ----------------------------------------------------------------------------------------------------------


def grown(arm: ArmUnderTest, random_: random.Random, count: int) -> HeldDataset:
    """Return a dataset with so many random writes; each key is in it once at most."""
    dataset = arm.create(COLUMNS, ["id"])
    verbs = [verb for verb in VERBS if verb != "append"]
    for verb, rows in itertools.islice(writes(random_, [*verbs, "upsert", "upsert", "delete"]), count):
        dataset.write(rows, verb, allow_empty=True)
        if random_.random() < 0.2:
            fresh = 1000 + dataset.record.next_row_id
            dataset.write([row(fresh, random_)], "append")
        if random_.random() < 0.3:
            compact(dataset)
    return dataset


def compact(dataset: HeldDataset) -> int:
    """Rewrite the files of the head, where the arm has files; return how many times that was done."""
    return len(list(dataset.workspace.storage._compaction.asked(dataset.created.id)))


def test_a_compaction_changes_nothing_and_hides_nothing(arm: ArmUnderTest) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    dataset.write(ROWS)
    for number in range(1, 4):
        dataset.write([note(number, "new"), note(10 + number, "n")], "upsert")
    dataset.write([{"id": 4}], "delete")
    before = {(old, new): told(dataset.changes(old, new)) for old in range(6) for new in range(max(old, 1), 6)}
    compactions = compact(dataset)
    assert compactions == (1 if arm.name == "iceberg" else 0)
    head = 5 + compactions
    assert dataset.version == head
    for (old, new), changes in before.items():
        assert told(dataset.changes(old, new)) == changes
        if new == 5:
            assert told(dataset.changes(old, head)) == changes
    assert dataset.changes(5, head) == []
    assert sorted(each["id"] for each in dataset.rows(since=2)) == [2, 3, 12, 13]
    dataset.write([{"id": 1}], "delete")
    assert told(dataset.changes(5)) == [("delete", 1, "new")]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_two_versions_of_a_random_history(arm: ArmUnderTest, seed: int) -> None:
    random_ = random.Random(seed)
    dataset = grown(arm, random_, 12)
    versions = all_versions(dataset)
    pairs = [(old, new) for old in versions for new in versions if old <= new and new > 0]
    for old, new in random_.sample(pairs, PAIRS):
        gone, come = versions[old], versions[new]
        found = Counter(map(frozen, dataset.changes(old, new, identity=True)))
        assert found == expected(gone, come), f"from {old} to {new}"
        fed = Counter(map(frozen, dataset.changes(old, new, identity=True, before=False)))
        assert fed == expected(gone, come, before=False, key=lambda each: each["id"]), f"from {old} to {new}"
        since = Counter(map(frozen, dataset.rows(since=old, version=new, identity=True)))
        assert since == Counter(frozen(each) for each in come if each["__version"] > old), f"from {old} to {new}"


def feed(dataset: HeldDataset, since: int, version: int | None) -> pa.RecordBatchReader:
    request = ChangesRequest(since, version, before=False, arm=dataset.arm)
    return dataset.workspace.storage.changes(dataset.record, request)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_replica_that_is_fed_changes_is_equal(arm: ArmUnderTest, seed: int) -> None:
    random_ = random.Random(100 + seed)
    dataset = grown(arm, random_, 12)
    replica = arm.create({name: COLUMNS[name] for name in ("tags", "id", "note")}, ["id"])
    versions = all_versions(dataset)
    at = 0
    for version in sorted({*random_.sample(sorted(versions)[1:], 6), dataset.version}):
        replica.write(feed(dataset, at, version), "changes")
        at = version
        want = Counter(frozen(plain(each)) for each in versions[version])
        have = Counter(frozen({name: each[name] for name in COLUMNS}) for each in replica.rows())
        assert have == want, f"at {version}"


def test_a_key_that_is_there_twice_is_refused_by_who_is_fed(arm: ArmUnderTest) -> None:
    dataset, replica = arm.create(COLUMNS, ["id"]), arm.create(COLUMNS, ["id"])
    dataset.write([note(1, "a")])
    dataset.write([note(1, "b")])
    with pytest.raises(DuplicateKey):
        replica.write(feed(dataset, 0, None), "changes")
    assert replica.version == 0


# Arms -----------------------------------------------------------------------------------------------------------------


def test_changes_come_from_an_arm_that_holds_both_versions(lasting: ArmUnderTest) -> None:
    other = "iceberg" if lasting.name == "postgres" else "postgres"
    dataset = lasting.create(COLUMNS, ["id"])
    dataset.write(ROWS)
    dataset.write([note(1, "new")], "upsert")
    dataset.workspace.storage.copy(dataset.record, other)
    dataset.write([{"id": 4}], "delete")
    # Version 3, a copy, is on both arms; 1, 2 and 4 are on the first one alone.
    assert dataset.changes(2, 3, arm=None) == []
    assert told(dataset.changes(1, 4, arm=None)) == [("before", 1, "n1"), ("delete", 4, "n4"), ("update", 1, "new")]
    with pytest.raises(ArmNotCurrent, match=f"version {2} was asked for"):
        dataset.changes(2, 3, arm=other)
    assert told(dataset.changes(0, 3, arm=other)) == told(dataset.changes(0, 3))


def test_versions_of_two_arms_are_compared_across_them(lasting: ArmUnderTest) -> None:
    other = "iceberg" if lasting.name == "postgres" else "postgres"
    dataset = lasting.create(COLUMNS, ["id"])
    dataset.write(ROWS)
    dataset.workspace.storage.copy(dataset.record, other)
    there = HeldDataset(dataset.workspace, other, dataset.created)
    there.write([note(1, "new"), note(7, "n7")], "upsert")
    there.write([{"id": 4}], "delete")
    changed = [("before", 1, "n1"), ("delete", 4, "n4"), ("insert", 7, "n7"), ("update", 1, "new")]
    # Version 1 is on the first arm alone, version 4 on the other one.
    assert told(dataset.changes(1, 4, arm=None)) == changed
    # Brought back, all rows are new ones of the first arm, and yet most are the old ones.
    assert dataset.workspace.storage.copy(dataset.record, dataset.arm).version == 5
    assert told(dataset.changes(1, 5)) == told(dataset.changes(1)) == changed
    assert told(there.changes(2, 5)) == changed
    assert dataset.changes(4, 5, arm=None) == []
