"""What the protocol refuses before it begins, and where it must not go on."""

from __future__ import annotations

import pytest

import lakeward
from lakeward.errors import EmptyReplace, RouteChanged, UnknownObject, UsageError
from lakeward.storage.requests import Output
from lakeward.types.conform import to_reader


def output(dataset: lakeward.Dataset, mode: str = "append", rows: int = 1) -> Output:
    new = [{"id": number} for number in range(rows)]
    return Output(dataset.record, mode, lambda: to_reader(new, dataset.schema, dataset=dataset.name))


@pytest.fixture
def dataset(workspace: lakeward.Workspace) -> lakeward.Dataset:
    return workspace.create_dataset("main.a.b", {"id": "long"})


def test_a_dataset_twice_in_one_build(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> None:
    with pytest.raises(UsageError, match=r"dataset main\.a\.b is written twice by one build"):
        workspace.storage.build([output(dataset), output(dataset, "replace")], writer="test")
    assert dataset.history() == [], "refused before anything is opened"


@pytest.mark.parametrize("mode", ["merge", "copy", "", "APPEND"])
def test_an_unknown_mode(workspace: lakeward.Workspace, dataset: lakeward.Dataset, mode: str) -> None:
    with pytest.raises(UnknownObject, match="there are replace, append"):
        workspace.storage.build([output(dataset, mode)], writer="test")
    with pytest.raises(UnknownObject):
        dataset.write([{"id": 1}], mode=mode)
    assert dataset.history() == []


def test_no_outputs_are_no_build(workspace: lakeward.Workspace) -> None:
    assert workspace.storage.build([], writer="test").transactions == ()
    assert workspace.transactions() == []


def test_an_empty_replace_ends_its_transaction(workspace: lakeward.Workspace, dataset: lakeward.Dataset) -> None:
    dataset.write([{"id": 1}])
    with pytest.raises(EmptyReplace, match=r"Safe: the dataset is unchanged at version 1\nNext: pass allow_empty=True"):
        workspace.storage.build([output(dataset, "replace", 0)], writer="test")
    assert [each.status for each in dataset.history()] == ["aborted", "committed"]


def test_a_route_that_changes_meanwhile_refuses_the_write(
    workspace: lakeward.Workspace, dataset: lakeward.Dataset
) -> None:
    dataset.write([{"id": 1}])

    def switch(prepared: object) -> None:
        with workspace.database.driver() as connection, connection.transaction():
            connection.execute("UPDATE lakeward.routes SET epoch = epoch + 1")

    plain = output(dataset)
    with pytest.raises(RouteChanged, match="repeat the write"):
        workspace.storage.build([Output(plain.dataset, "append", plain.rows, audit=switch)], writer="test")
    assert dataset.to_arrow().to_pylist() == [{"id": 1}]
    assert [each.status for each in dataset.history()] == ["aborted", "committed"]
    assert dataset.write([{"id": 2}]).committed


def test_rows_are_asked_for_once_and_only_when_the_slot_is_taken(
    workspace: lakeward.Workspace, dataset: lakeward.Dataset
) -> None:
    asked = []

    def rows() -> object:
        asked.append([each.status for each in dataset.history()])
        return to_reader([{"id": 1}], dataset.schema, dataset=dataset.name)

    workspace.storage.build([Output(dataset.record, "append", rows)], writer="test")  # type: ignore[arg-type]
    assert asked == [["open"]]
