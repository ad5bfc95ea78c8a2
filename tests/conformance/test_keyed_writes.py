"""What the keyed verbs do on every arm: rows and counts, a digest that goes along, nothing where nothing changes."""

from __future__ import annotations

from typing import Any

import pytest

from lakeward import WriteResult
from lakeward.errors import EmptyReplace
from lakeward.storage.verbs import KEYED
from support.arms import ArmUnderTest, HeldDataset
from support.covering import covering
from support.keyed import assert_digest_kept, counts
from support.rows import arrow_table

COLUMNS = {"id": "long", "note": "string"}
OLD = [(1, "a"), (2, "b"), (3, "c")]


def rows(*given: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(("id", "note"), row, strict=True)) for row in given]


def change(operation: str, id_: int, note: str | None = None) -> dict[str, Any]:
    return {"id": id_, "note": note, "__op": operation}


def keys(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number} for number in ids]


@pytest.fixture
def empty(arm: ArmUnderTest) -> HeldDataset:
    """A dataset without versions."""
    return arm.create(COLUMNS, ["id"])


@pytest.fixture
def dataset(empty: HeldDataset) -> HeldDataset:
    """Three rows, at version 1, whose digest is known."""
    empty.write(rows(*OLD))
    empty.workspace.storage.verify(empty.record)
    return empty


NEITHER: dict[str, list[dict[str, Any]]] = {
    "append_new": rows((1, "other"), (3, "other")),
    "upsert": rows((3, "c"), (1, "a")),
    "mirror": rows((3, "c"), (1, "a"), (2, "b")),
    "changes": [change("update", 2, "b"), change("insert", 1, "a"), change("delete", 9)],
    "delete": keys(8, 9),
}
"""For each verb an input that changes nothing of `OLD`."""

CHANGES: dict[str, tuple[list[dict[str, Any]], dict[str, int], list[tuple[int, str | None]]]] = {
    "append_new": (
        rows((2, "B"), (5, "e"), (4, "d")),
        {"rows_in": 3, "rows_added": 2, "rows_skipped": 1},
        [*OLD, (5, "e"), (4, "d")],
    ),
    "upsert": (
        rows((5, "e"), (2, "B"), (1, "a"), (4, None)),
        {"rows_in": 4, "rows_added": 2, "rows_updated": 1, "rows_unchanged": 1},
        [(1, "a"), (2, "B"), (3, "c"), (5, "e"), (4, None)],
    ),
    "mirror": (
        rows((4, "d"), (3, None), (1, "a")),
        {"rows_in": 3, "rows_added": 1, "rows_updated": 1, "rows_unchanged": 1, "rows_deleted": 1},
        [(1, "a"), (3, None), (4, "d")],
    ),
    "changes": (
        [
            change("insert", 1, "A"),
            change("update", 2, "b"),
            change("delete", 3, "whatever"),
            change("update", 5, "e"),
            change("delete", 9),
            change("insert", 4, "d"),
        ],
        {"rows_in": 6, "rows_added": 2, "rows_updated": 1, "rows_unchanged": 1, "rows_deleted": 1, "rows_skipped": 1},
        [(1, "A"), (2, "b"), (5, "e"), (4, "d")],
    ),
    "delete": (keys(9, 1, 3), {"rows_in": 3, "rows_deleted": 2, "rows_skipped": 1}, [(2, "b")]),
}
"""For each verb an input, its counts and the rows that it makes of `OLD`."""


def without_update(verb: str) -> list[tuple[int, str | None]]:
    """Return what a verb's input of `CHANGES` makes of no rows."""
    given = CHANGES[verb][0]
    return [(row["id"], row["note"]) for row in given if row.get("__op") != "delete"] if verb != "delete" else []


def test_every_keyed_verb_is_here() -> None:
    assert set(CHANGES) == set(NEITHER) == set(KEYED)


@pytest.mark.parametrize("verb", KEYED)
def test_rows_and_counts(dataset: HeldDataset, verb: str) -> None:
    given, expected, after = CHANGES[verb]
    result = dataset.write(given, verb)
    assert counts(result) == {**expected, "version": 2, "row_count": len(after), "committed": True}
    assert_sum(result)
    assert dataset.rows() == rows(*after)
    assert (dataset.version, dataset.record.row_count) == (2, len(after))
    assert dataset.rows(version=1) == rows(*OLD), "an earlier version stays as it was"
    assert dataset.leftovers() == {}
    assert_digest_kept(dataset, known=True)


def assert_sum(result: WriteResult) -> None:
    asked = result.rows_deleted if result.verb in ("changes", "delete") else 0
    assert result.rows_in == (
        result.rows_added + result.rows_updated + result.rows_unchanged + result.rows_skipped + asked
    )


@pytest.mark.parametrize("verb", KEYED)
def test_the_ledger_has_the_counts(dataset: HeldDataset, verb: str) -> None:
    result = dataset.write(CHANGES[verb][0], verb)
    (entry,) = [
        each
        for each in dataset.workspace.transactions()
        if (each.dataset, each.version) == (dataset.created.name, result.version)
    ]
    assert (entry.status, entry.verb, entry.rows_in, entry.row_count) == (
        "committed",
        verb,
        result.rows_in,
        result.row_count,
    )


@pytest.mark.parametrize("verb", KEYED)
def test_repeated_it_changes_nothing(dataset: HeldDataset, verb: str) -> None:
    given, _, after = CHANGES[verb]
    dataset.write(given, verb)
    before = dataset.rows(identity=True)
    again = dataset.write(given, verb)
    assert (again.committed, again.version, again.row_count) == (False, 2, len(after))
    assert again.rows_in == len(given) == again.rows_unchanged + again.rows_skipped
    assert dataset.rows(identity=True) == before


@pytest.mark.parametrize("verb", KEYED)
def test_nothing_to_change_commits_nothing(dataset: HeldDataset, verb: str) -> None:
    before = dataset.rows(identity=True)
    result = dataset.write(NEITHER[verb], verb)
    assert (result.committed, result.version, result.row_count) == (False, 1, 3)
    assert_sum(result)
    assert (result.rows_in, result.rows_added, result.rows_updated, result.rows_deleted) == (
        len(NEITHER[verb]),
        0,
        0,
        0,
    )
    assert dataset.rows(identity=True) == before
    assert (dataset.version, dataset.leftovers()) == (1, {})
    history = [each for each in dataset.workspace.transactions() if each.dataset == dataset.created.name]
    assert [(each.version, each.status) for each in history] == [(2, "aborted"), (1, "committed")]
    assert dataset.write(rows((9, "z"))).version == 3, "the dataset can be written on"


@covering("arm verb", "held")
@pytest.mark.parametrize("verb", KEYED)
@pytest.mark.parametrize("held", ["no rows", "rows"])
def test_u03_an_empty_input_commits_nothing(arm: ArmUnderTest, verb: str, held: str) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    if held == "rows":
        dataset.write(rows(*OLD))
    version = dataset.version
    taken = arrow_table(dataset.schema, []).select(["id"] if verb == "delete" else ["id", "note"])
    if verb == "changes":
        taken = taken.append_column("__op", [[]])
    for nothing in ([], taken):
        if verb == "mirror":
            with pytest.raises(EmptyReplace, match="mirror by zero rows would empty it"):
                dataset.write(nothing, verb)
        else:
            result = dataset.write(nothing, verb)
            assert counts(result) == {
                each: value for each, value in (("version", version), ("row_count", dataset.record.row_count)) if value
            }
    assert (dataset.version, dataset.leftovers()) == (version, {})
    assert dataset.rows() == (rows(*OLD) if held == "rows" else [])


def test_a_mirror_by_zero_rows_that_was_asked_for(dataset: HeldDataset) -> None:
    result = dataset.write([], "mirror", allow_empty=True)
    assert counts(result) == {"version": 2, "rows_deleted": 3, "committed": True}
    assert dataset.rows() == []
    assert dataset.rows(version=1) == rows(*OLD)
    assert_digest_kept(dataset, known=True)
    again = dataset.write([], "mirror", allow_empty=True)
    assert counts(again) == {"version": 2}, "there is nothing left to delete"
    dataset.write(rows((7, "g")), "upsert")
    assert dataset.rows() == rows((7, "g"))


def test_a_mirror_by_zero_rows_of_a_dataset_without_versions(empty: HeldDataset) -> None:
    assert counts(empty.write([], "mirror", allow_empty=True)) == {}
    assert (empty.version, empty.leftovers()) == (0, {})


@pytest.mark.parametrize("verb", KEYED)
def test_as_first_write(empty: HeldDataset, verb: str) -> None:
    given = CHANGES[verb][0]
    expected = without_update(verb)
    result = empty.write(given, verb)
    assert_sum(result)
    assert (result.committed, result.rows_added, result.row_count) == (verb != "delete", len(expected), len(expected))
    assert result.rows_skipped == len(given) - len(expected)
    assert empty.rows() == rows(*expected)
    assert_digest_kept(empty, known=True)
    assert empty.leftovers() == {}


@covering("arm verb", "emptied")
@pytest.mark.parametrize("verb", KEYED)
@pytest.mark.parametrize("emptied", ["replace", "mirror", "delete"])
def test_after_all_rows_were_deleted(dataset: HeldDataset, verb: str, emptied: str) -> None:
    if emptied == "delete":
        dataset.write(keys(1, 2, 3), "delete")
    else:
        dataset.write([], emptied, allow_empty=True)
    assert dataset.rows() == []
    expected = without_update(verb)
    result = dataset.write(CHANGES[verb][0], verb)
    assert (result.committed, result.rows_added) == (verb != "delete", len(expected))
    assert dataset.rows() == rows(*expected)
    assert dataset.rows(version=1) == rows(*OLD)
    assert_digest_kept(dataset, known=emptied != "replace" or verb != "delete")


@pytest.mark.parametrize("verb", KEYED)
def test_after_a_replace(dataset: HeldDataset, verb: str) -> None:
    dataset.write(rows((8, "x"), (9, "y")), "replace")
    dataset.write(rows(*OLD), "replace")
    given, expected, after = CHANGES[verb]
    result = dataset.write(given, verb)
    assert counts(result) == {**expected, "version": 4, "row_count": len(after), "committed": True}
    assert dataset.rows() == rows(*after)
    assert dataset.rows(version=3) == rows(*OLD)
    assert dataset.rows(version=2) == rows((8, "x"), (9, "y"))


@pytest.mark.parametrize("verb", KEYED)
def test_after_appends_and_before_a_replace(dataset: HeldDataset, verb: str) -> None:
    dataset.write(rows((50, "p")))
    dataset.write(rows((51, "q")))
    given, _, after = CHANGES[verb]
    dataset.write(given, verb)
    more = [] if verb == "mirror" else [(50, "p"), (51, "q")]
    assert sorted(map(str, dataset.rows())) == sorted(map(str, rows(*after, *more)))
    assert_digest_kept(dataset, known=True)
    dataset.write(rows((1, "z")), "replace")
    assert dataset.rows() == rows((1, "z"))


def test_every_version_of_a_long_history_reads_as_it_was(dataset: HeldDataset) -> None:
    seen = {1: dataset.rows(identity=True)}
    for turn in range(3):
        for verb in KEYED:
            result = dataset.write(CHANGES[verb][0], verb)
            if result.committed:
                assert_digest_kept(dataset, known=True)
            seen[dataset.version] = dataset.rows(identity=True)
        dataset.write(rows((100 + turn, "n")))
        seen[dataset.version] = dataset.rows(identity=True)
    assert len(seen) > 10
    for version, expected in seen.items():
        assert dataset.rows(version=version, identity=True) == expected, version


def test_since_a_version_the_rows_that_were_written_after_it(dataset: HeldDataset) -> None:
    dataset.write(rows((1, "a"), (2, "B"), (4, "d")), "upsert")
    dataset.write([change("update", 4, "D"), change("delete", 1)], "changes")
    assert dataset.rows(since=1) == rows((2, "B"), (4, "D"))
    assert dataset.rows(since=2) == rows((4, "D"))
    assert dataset.rows(since=3) == []
    assert dataset.rows(since=1, version=2) == rows((2, "B"), (4, "d"))


def test_u01_twenty_thousand_keys_of_two_columns_in_one_write(arm: ArmUnderTest) -> None:
    """One snapshot, no recursion and no overflow, whatever the number of keys."""
    dataset = arm.create({"a": "int", "b": "string", "v": "long"}, ["a", "b"])
    count = 20_000
    dataset.write({"a": number % 150, "b": f"b{number}", "v": number} for number in range(count))
    dataset.workspace.storage.verify(dataset.record)
    for part in (500, 1_000, 1_500, 5_000, count):
        given = ({"a": number % 150, "b": f"b{number}", "v": number + part} for number in range(part))
        result = dataset.write(given, "upsert")
        assert counts(result) == {
            "version": dataset.version,
            "rows_in": part,
            "rows_updated": part,
            "row_count": count,
            "committed": True,
        }
    assert dataset.version == 6
    read = dataset.to_arrow(identity=True).sort_by("__row_index")
    assert read["v"].to_pylist() == [number + count for number in range(count)]
    assert read["__row_id"].to_pylist() == list(range(count))
    result = dataset.write(({"a": number % 150, "b": f"b{number}"} for number in range(0, count, 2)), "delete")
    assert (result.rows_deleted, result.row_count) == (count // 2, count // 2)
    assert_digest_kept(dataset, known=True)


def test_an_input_that_is_larger_than_a_batch(dataset: HeldDataset) -> None:
    count = 150_000
    result = dataset.write(({"id": number, "note": f"n{number}"} for number in range(count, 0, -1)), "upsert")
    assert (result.rows_added, result.rows_updated, result.row_count) == (count - 3, 3, count)
    read = dataset.to_arrow(identity=True).sort_by("__row_index")
    assert read["id"].to_pylist() == [1, 2, 3, *range(count, 3, -1)], "in the order of the input"
    assert read["__row_index"].to_pylist() == list(range(count))
    assert_digest_kept(dataset, known=True)
