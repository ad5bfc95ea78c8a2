"""What keyed writes refuse, on every arm by the same error: nothing is written, and the dataset stays as it was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest

from lakeward.errors import ColumnMismatch, DuplicateKey, LakewardError, SchemaError, ValueRefused
from lakeward.storage.verbs import KEYED, VERBS
from support.arms import ArmUnderTest, HeldDataset, iceberg_table
from support.covering import covering
from support.keyed import counts

COLUMNS = {"id": "long", "note": "string"}
OLD = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]
MANY = 70_001
MATCHING = [verb for verb in KEYED if verb != "delete"]
"""The verbs whose input has all columns."""


def given(verb: str, *pairs: tuple[Any, Any]) -> list[dict[str, Any]]:
    """Return rows as a verb takes them."""
    rows: list[dict[str, Any]] = [{"id": id_, "note": note} for id_, note in pairs]
    if verb == "changes":
        return [{**row, "__op": "update"} for row in rows]
    return [{"id": row["id"]} for row in rows] if verb == "delete" else rows


def many(verb: str, last: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield so many good rows that they make two batches, and a last one."""
    (row,) = given(verb, (0, ""))
    for number in range(10, 10 + MANY - 1):
        yield {**row, "id": number}
    yield {**row, **last}


def snapshots(dataset: HeldDataset) -> int:
    table = iceberg_table(dataset.workspace, dataset.table)
    return 0 if table is None else len(table.metadata.snapshots)


@pytest.fixture(scope="module")
def filled() -> dict[str, HeldDataset]:
    """One dataset of two rows for each arm: what is refused changes nothing, and each test looks whether that is so."""
    return {}


@pytest.fixture(params=["empty", "filled"])
def dataset(request: pytest.FixtureRequest, arm: ArmUnderTest, filled: dict[str, HeldDataset]) -> HeldDataset:
    """A dataset without versions, another one for each test, and one of two rows."""
    if request.param == "filled" and arm.name in filled:
        return filled[arm.name]
    made = arm.create(COLUMNS, ["id"])
    if request.param == "filled":
        made.write(OLD)
        filled[arm.name] = made
    return made


def refused(dataset: HeldDataset, rows: object, verb: str, error: type[LakewardError]) -> LakewardError:
    """Return the error of a write, after looking whether it left anything."""
    before = (dataset.version, dataset.rows(identity=True), snapshots(dataset))
    with pytest.raises(error) as caught:
        dataset.write(rows, verb)
    assert (dataset.version, dataset.rows(identity=True), snapshots(dataset)) == before
    assert dataset.leftovers() == {}
    found = caught.value
    assert type(found) is error
    assert found.fields["dataset"] == dataset.created.name
    assert dataset.created.name in found.message
    assert found.safe == "nothing was written"
    return found


@covering("arm verb", "arm dataset", "second")
@pytest.mark.parametrize("verb", KEYED)
@pytest.mark.parametrize("second", ["a", "other"], ids=["identical rows", "differing rows"])
def test_u03_a_key_twice_in_the_input(dataset: HeldDataset, verb: str, second: str) -> None:
    rows = given(verb, (1, "a"), (7, "x"), (1, second), (2, "b"))
    error = refused(dataset, rows, verb, DuplicateKey)
    assert (error.fields["where"], error.fields["keys"], error.fields["count"]) == ("input", [{"id": "1"}], 1)
    assert "the input has a key more than once: id=1" in error.message


@covering("arm verb", "arm dataset")
@pytest.mark.parametrize("verb", KEYED)
def test_u03_of_many_keys_the_first_are_named(dataset: HeldDataset, verb: str) -> None:
    """In the order of the input, far apart and in several batches."""
    doubled = [number for number in range(40_000, 0, -1) if number % 4_000 == 0]
    rows = given(verb, *((number, "") for number in range(40_000, 0, -1)), *((number, "") for number in doubled))
    error = refused(dataset, rows, verb, DuplicateKey)
    assert error.fields["count"] == 10
    assert error.fields["keys"] == [{"id": str(number)} for number in doubled[:5]]
    assert "and 5 more" in error.message


@pytest.mark.parametrize("verb", KEYED)
def test_u03_a_key_that_the_dataset_has_twice(arm: ArmUnderTest, verb: str) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    dataset.write(OLD)
    dataset.write([{"id": 2, "note": "c"}, {"id": 4, "note": "d"}])
    dataset.write([{"id": 2, "note": "b"}])
    error = refused(dataset, given(verb, (9, "n"), (2, "b"), (4, "d")), verb, DuplicateKey)
    assert (error.fields["where"], error.fields["keys"], error.fields["count"]) == ("dataset", [{"id": "2"}], 1)
    assert "it holds a key more than once: id=2" in error.message
    dataset.write([{"id": 4, "note": "e"}, {"id": 1, "note": "e"}])
    error = refused(dataset, given(verb, (4, ""), (1, ""), (8, ""), (2, "")), verb, DuplicateKey)
    assert error.fields["keys"] == [{"id": "4"}, {"id": "1"}, {"id": "2"}], "in the order of the input"
    assert error.fields["count"] == 3


@pytest.mark.parametrize("verb", [verb for verb in KEYED if verb != "mirror"])
def test_keys_that_the_dataset_has_twice_and_the_input_has_not(arm: ArmUnderTest, verb: str) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    dataset.write([*OLD, *OLD[1:]])
    result = dataset.write(given(verb, (1, "new"), (5, "e")), verb)
    assert (result.rows_in, result.row_count) == (2, len(dataset.rows()))
    assert [row["note"] for row in dataset.rows() if row["id"] == 2] == ["b", "b"]


def test_a_mirror_deletes_every_row_of_a_key_that_it_does_not_have(arm: ArmUnderTest) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    dataset.write([*OLD, *OLD[1:]])
    result = dataset.write([{"id": 1, "note": "a"}], "mirror")
    assert counts(result) == {
        "version": 2,
        "rows_in": 1,
        "rows_unchanged": 1,
        "rows_deleted": 2,
        "row_count": 1,
        "committed": True,
    }
    assert dataset.rows() == OLD[:1]


@pytest.mark.parametrize("verb", KEYED)
def test_u03_after_a_replace_by_unique_rows_it_goes_on(arm: ArmUnderTest, verb: str) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    dataset.write([*OLD, *OLD])
    refused(dataset, given(verb, (1, "z")), verb, DuplicateKey)
    dataset.write(OLD, "replace")
    assert dataset.write(given(verb, (1, "z"), (3, "c")), verb).rows_in == 2


@covering("arm verb", "arm dataset", "place")
@pytest.mark.parametrize("verb", KEYED)
@pytest.mark.parametrize("place", ["first", "late"])
def test_u02_a_null_key(dataset: HeldDataset, verb: str, place: str) -> None:
    rows: object = given(verb, (5, "e"), (None, "x")) if place == "first" else many(verb, {"id": None})
    error = refused(dataset, rows, verb, ValueRefused)
    assert (error.fields["column"], error.fields["row"]) == ("id", 2 if place == "first" else MANY)
    assert "may not stand in a column of the primary key" in error.message


@pytest.mark.parametrize("verb", KEYED)
def test_u02_a_null_in_one_column_of_the_key(arm: ArmUnderTest, verb: str) -> None:
    """Refused each time: a second run neither adds the row nor updates it."""
    dataset = arm.create({"k": "string", "k2": "string", "v": "long"}, ["k", "k2"])
    dataset.write([{"k": "a", "k2": "b", "v": 1}])
    row: dict[str, Any] = {"k": "a", "k2": None, "v": 8}
    if verb == "changes":
        row["__op"] = "update"
    elif verb == "delete":
        del row["v"]
    for _ in range(2):
        error = refused(dataset, [row], verb, ValueRefused)
        assert (error.fields["column"], error.fields["row"], error.fields["key"]) == (
            "k2",
            1,
            {"k": "'a'", "k2": "None"},
        )


@covering("arm dataset", "verb")
@pytest.mark.parametrize("verb", MATCHING)
def test_a_value_of_another_type_late_in_the_input(dataset: HeldDataset, verb: str) -> None:
    error = refused(dataset, many(verb, {"note": 7}), verb, ValueRefused)
    assert (error.fields["column"], error.fields["row"]) == ("note", MANY)


@covering("arm dataset", "verb")
@pytest.mark.parametrize("verb", KEYED)
def test_a_key_of_another_type_late_in_the_input(dataset: HeldDataset, verb: str) -> None:
    error = refused(dataset, many(verb, {"id": "seven"}), verb, ValueRefused)
    assert (error.fields["column"], error.fields["row"]) == ("id", MANY)


@covering("arm verb", "form verb", "dataset")
@pytest.mark.parametrize("verb", KEYED)
@pytest.mark.parametrize("form", ["rows", "arrow"])
def test_u06_a_column_that_is_missing_or_too_much(dataset: HeldDataset, verb: str, form: str) -> None:
    whole = given(verb, (5, "e"), (6, "f"))
    missing = "id" if verb == "delete" else "note"
    fewer = [{name: value for name, value in row.items() if name != missing} | {"z": 1} for row in whole]
    more = [{**row, "z": 1} for row in whole]
    for rows, lacks in ((fewer, [missing]), (more, [])):
        error = refused(dataset, pa.Table.from_pylist(rows) if form == "arrow" else rows, verb, ColumnMismatch)
        assert (error.fields["missing"], error.fields["unexpected"]) == (lacks, ["z"])


def test_delete_takes_the_key_alone(dataset: HeldDataset) -> None:
    error = refused(dataset, [{"id": 1, "note": "a"}], "delete", ColumnMismatch)
    assert error.fields["unexpected"] == ["note"]


def test_changes_need_to_say_what_they_are(dataset: HeldDataset) -> None:
    error = refused(dataset, [{"id": 1, "note": "a"}], "changes", ColumnMismatch)
    assert error.fields["missing"] == ["__op"]


@covering("arm verb", "dataset")
@pytest.mark.parametrize("verb", [verb for verb in KEYED if verb != "changes"])
def test_only_changes_take_operations(dataset: HeldDataset, verb: str) -> None:
    rows = [{**row, "__op": "delete"} for row in given(verb, (1, "a"))]
    assert refused(dataset, rows, verb, ColumnMismatch).fields["unexpected"] == ["__op"]


@covering("arm operation", "arm dataset", "place")
@pytest.mark.parametrize("operation", [None, "", "upsert", "DELETE", " delete", "d"])
@pytest.mark.parametrize("place", ["first", "late"])
def test_an_operation_that_there_is_not(dataset: HeldDataset, operation: str | None, place: str) -> None:
    rows: object = [*given("changes", (5, "e")), {"id": 6, "note": "f", "__op": operation}]
    if place == "late":
        rows = many("changes", {"__op": operation})
    error = refused(dataset, rows, "changes", ValueRefused)
    assert (error.fields["column"], error.fields["row"]) == ("__op", 2 if place == "first" else MANY)
    assert "insert, update, delete" in error.message


@covering("arm", "verb")
@pytest.mark.parametrize("verb", KEYED)
def test_a_dataset_without_a_key(arm: ArmUnderTest, verb: str) -> None:
    dataset = arm.create(COLUMNS)
    dataset.write(OLD)
    for rows in (OLD, []):
        error = refused(dataset, rows, verb, SchemaError)
        assert f"has no primary key, which {verb} matches rows by" in error.message


@pytest.mark.parametrize("name", ["__op", "__OP"])
def test_a_dataset_with_a_column_called_op(arm: ArmUnderTest, name: str) -> None:
    dataset = arm.create({"id": "long", name: "string"}, ["id"])
    row = {"id": 1, name: "delete"}
    error = refused(dataset, [row], "changes", SchemaError)
    assert error.fields["column"] == name
    for verb, given_row, expected in (
        ("upsert", row, [row]),
        ("upsert", {"id": 1, name: "x"}, [{"id": 1, name: "x"}]),
        ("mirror", {"id": 2, name: "insert"}, [{"id": 2, name: "insert"}]),
        ("append_new", {"id": 2, name: "y"}, [{"id": 2, name: "insert"}]),
        ("delete", {"id": 2}, []),
    ):
        dataset.write([given_row], verb)
        assert dataset.rows() == expected


@covering("arm dataset", "verb")
@pytest.mark.parametrize("verb", KEYED)
def test_an_error_of_the_callers_own_iterator_passes_unchanged(dataset: HeldDataset, verb: str) -> None:
    def source() -> Iterator[dict[str, Any]]:
        yield from given(verb, *((number, "") for number in range(MANY)))
        raise ZeroDivisionError("in the middle")

    before = dataset.rows(identity=True)
    with pytest.raises(ZeroDivisionError, match="in the middle"):
        dataset.write(source(), verb)
    assert dataset.rows(identity=True) == before
    assert dataset.leftovers() == {}


@pytest.mark.parametrize("verb", KEYED)
def test_a_refusal_by_an_audit_changes_nothing(arm: ArmUnderTest, verb: str) -> None:
    dataset = arm.create(COLUMNS, ["id"])
    dataset.write(OLD)
    before = dataset.rows(identity=True)
    seen: list[int] = []

    def audit(prepared: Any) -> None:
        seen.append(dataset.workspace.storage.routing.arm(prepared.arm).digest(prepared.table, prepared.where).count)
        assert dataset.rows(identity=True) == before, "the prepared version must be invisible"
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dataset.write(given(verb, (1, "new"), (3, "c")), verb, audit=audit)
    assert seen == [{"mirror": 2, "delete": 1}.get(verb, 3)]
    assert dataset.rows(identity=True) == before
    assert (dataset.version, dataset.leftovers()) == (1, {})
    result = dataset.write(given(verb, (1, "new"), (3, "c")), verb)
    assert (result.version, result.row_count) == (3, seen[0])


def test_every_verb_with_all_columns_is_here() -> None:
    assert {verb for verb in KEYED if not VERBS[verb].removes} == set(MATCHING)
