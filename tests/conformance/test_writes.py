"""What a write does on every arm: rows and counts, atomically, or a refusal that changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from lakeward.errors import (
    ColumnMismatch,
    EmptyReplace,
    ExpectationFailed,
    SchemaError,
    UnknownObject,
    UnknownVersion,
    UsageError,
    ValueRefused,
)
from lakeward.storage.requests import PreparedVersion
from lakeward.types.digest import EMPTY
from support.arms import ArmUnderTest, HeldDataset
from support.rows import arrow_table

COLUMNS = {"id": "long", "note": "string"}


def rows(*ids: int) -> list[dict[str, Any]]:
    return [{"id": number, "note": f"n{number}"} for number in ids]


def counts(result: Any) -> dict[str, Any]:
    names = ("version", "rows_in", "rows_added", "rows_updated", "rows_unchanged", "rows_deleted", "rows_skipped")
    return {name: getattr(result, name) for name in (*names, "row_count", "committed") if getattr(result, name)}


@pytest.fixture
def dataset(arm: ArmUnderTest) -> HeldDataset:
    return arm.create(COLUMNS, ["id"])


def test_first_append(dataset: HeldDataset) -> None:
    result = dataset.write(rows(1, 2))
    assert counts(result) == {"version": 1, "rows_in": 2, "rows_added": 2, "row_count": 2, "committed": True}
    assert dataset.rows() == rows(1, 2)
    assert (dataset.version, dataset.record.row_count) == (1, 2)


def test_append_adds_to_what_is_there(dataset: HeldDataset) -> None:
    dataset.write(rows(1, 2))
    result = dataset.write(rows(3))
    assert counts(result) == {"version": 2, "rows_in": 1, "rows_added": 1, "row_count": 3, "committed": True}
    assert dataset.rows() == rows(1, 2, 3)


def test_replace_takes_the_place_of_all_rows(dataset: HeldDataset) -> None:
    dataset.write(rows(1, 2))
    result = dataset.write(rows(3), "replace")
    expected = {"version": 2, "rows_in": 1, "rows_added": 1, "rows_deleted": 2, "row_count": 1, "committed": True}
    assert counts(result) == expected
    assert dataset.rows() == rows(3)


def test_replace_may_come_first(dataset: HeldDataset) -> None:
    result = dataset.write(rows(1), "replace")
    assert counts(result) == {"version": 1, "rows_in": 1, "rows_added": 1, "row_count": 1, "committed": True}
    dataset.write(rows(2))
    assert dataset.rows() == rows(1, 2)


def test_append_after_several_replaces(dataset: HeldDataset) -> None:
    for number in range(3):
        dataset.write(rows(number, 10 + number), "replace")
    dataset.write(rows(99))
    assert dataset.rows() == rows(2, 12, 99)


def test_an_empty_append_commits_nothing(dataset: HeldDataset) -> None:
    dataset.write(rows(1))
    result = dataset.write([])
    assert counts(result) == {"version": 1, "row_count": 1}
    assert dataset.version == 1
    assert dataset.rows() == rows(1)


def test_an_empty_first_append_leaves_a_dataset_without_versions(dataset: HeldDataset) -> None:
    assert counts(dataset.write([])) == {}
    assert dataset.to_arrow().num_rows == 0
    assert dataset.to_arrow(identity=True).schema.names[-4:] == ["__row_index", "__row_id", "__created_at", "__version"]
    assert dataset.digest() == EMPTY
    with pytest.raises(UnknownVersion):
        dataset.to_arrow(version=1)


def test_batches_without_rows_are_no_rows(dataset: HeldDataset) -> None:
    empty = arrow_table(dataset.schema, [])
    assert not dataset.write(empty).committed
    with pytest.raises(EmptyReplace):
        dataset.write(empty, "replace")


def test_replace_by_zero_rows_has_to_be_asked_for(dataset: HeldDataset) -> None:
    dataset.write(rows(1, 2))
    with pytest.raises(EmptyReplace, match="replace by zero rows") as caught:
        dataset.write([], "replace")
    assert "unchanged at version 1" in str(caught.value)
    assert dataset.rows() == rows(1, 2)

    result = dataset.write([], "replace", allow_empty=True)
    assert (result.committed, result.rows_deleted, result.row_count) == (True, 2, 0)
    assert dataset.rows() == []
    assert dataset.digest() == EMPTY
    assert dataset.rows(version=1) == rows(1, 2)
    dataset.write(rows(3))
    assert dataset.rows() == rows(3)


def test_replace_by_zero_rows_may_come_first(dataset: HeldDataset) -> None:
    assert dataset.write([], "replace", allow_empty=True).committed
    assert dataset.rows() == []
    dataset.write(rows(1))
    assert dataset.rows() == rows(1)


def test_a_wrong_value_changes_nothing(dataset: HeldDataset) -> None:
    dataset.write(rows(1))
    for mode in ("append", "replace"):
        with pytest.raises(ValueRefused, match=r"conformance\.d\d+") as caught:
            dataset.write([*rows(2), {"id": "three", "note": None}], mode)
        assert caught.value.fields["column"] == "id"
        assert caught.value.fields["row"] == 2
    assert dataset.rows() == rows(1)
    assert (dataset.version, dataset.leftovers()) == (1, {})


def test_wrong_columns_change_nothing(dataset: HeldDataset) -> None:
    with pytest.raises(ColumnMismatch):
        dataset.write([{"id": 1}])
    with pytest.raises(ColumnMismatch):
        dataset.write([{"id": 1, "note": "", "more": 1}])
    assert (dataset.version, dataset.leftovers()) == (0, {})


def test_an_error_of_the_callers_own_iterator_passes_unchanged(dataset: HeldDataset) -> None:
    def source() -> Iterator[dict[str, Any]]:
        yield from rows(*range(70_000))
        raise ZeroDivisionError("in the middle")

    with pytest.raises(ZeroDivisionError, match="in the middle"):
        dataset.write(source())
    assert (dataset.version, dataset.leftovers()) == (0, {})


def test_a_refusal_by_an_audit_changes_nothing(dataset: HeldDataset) -> None:
    dataset.write(rows(1))
    seen: list[int] = []

    def audit(prepared: PreparedVersion) -> None:
        digest = dataset.workspace.storage.routing.arm(prepared.arm).digest(prepared.table, prepared.where)
        seen.append(digest.count)
        assert dataset.rows() == rows(1), "the prepared version must be invisible"
        raise ExpectationFailed("too few")

    for mode in ("append", "replace"):
        with pytest.raises(ExpectationFailed):
            dataset.write(rows(2), mode, audit=audit)
    assert seen == [2, 1]
    assert dataset.rows() == rows(1)
    assert (dataset.version, dataset.leftovers()) == (1, {})


def test_an_unknown_mode_and_a_dataset_twice_are_refused(dataset: HeldDataset) -> None:
    storage = dataset.workspace.storage
    with pytest.raises(UnknownObject, match="unknown write mode 'merge'"):
        storage.build([dataset.output(rows(1), "merge")], writer="conformance")
    with pytest.raises(UsageError, match="written twice"):
        storage.build([dataset.output(rows(1)), dataset.output(rows(2))], writer="conformance")
    assert dataset.version == 0


def test_unknown_columns_are_refused(dataset: HeldDataset) -> None:
    dataset.write(rows(1))
    for columns in (["nope"], [], ["id", "id"]):
        with pytest.raises(SchemaError):
            dataset.to_arrow(columns=columns)


def test_the_ledger_tells_what_happened(dataset: HeldDataset) -> None:
    dataset.write(rows(1, 2))
    with pytest.raises(EmptyReplace):
        dataset.write([], "replace")
    dataset.write(rows(3), "replace")
    history = [each for each in dataset.workspace.transactions() if each.dataset == dataset.created.name]
    assert [(each.version, each.status, each.verb, each.rows_in, each.row_count) for each in history] == [
        (3, "committed", "replace", 1, 1),
        (2, "aborted", "replace", None, None),
        (1, "committed", "append", 2, 2),
    ]
    assert all(each.published_at is not None for each in history if each.status == "committed")
    assert "EmptyReplace" in str(history[1].error)
