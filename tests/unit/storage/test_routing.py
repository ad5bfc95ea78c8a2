"""Which arm a read goes to: the primary, else one that holds the version; an arm asked for by name must hold it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import ArmNotCurrent, UnknownObject, UnknownVersion
from lakeward.storage.routing import Routing
from lakeward.testing import InMemoryArm


@pytest.fixture
def workspace(database_url: str, tmp_path: Path) -> Iterator[lakeward.Workspace]:
    with lakeward.open(
        tmp_path / "home", database_url=database_url, warehouse=tmp_path / "warehouse", extra_arms=[InMemoryArm]
    ) as opened:
        yield opened


@pytest.fixture
def dataset(workspace: lakeward.Workspace) -> lakeward.Dataset:
    return workspace.create_dataset("main.a.b", {"id": "long"})


@pytest.fixture
def routing(workspace: lakeward.Workspace) -> Routing:
    return workspace.storage.routing


def place(routing: Routing, dataset: lakeward.Dataset, arm: str | None = None, version: int | None = None) -> object:
    found = routing.resolve(dataset.record, arm, version)
    return None if found is None else (found.arm.name, found.version.version)


def test_a_dataset_without_versions_is_nowhere(routing: Routing, dataset: lakeward.Dataset) -> None:
    assert place(routing, dataset) is None
    assert place(routing, dataset, "iceberg") is None
    assert routing.holders(dataset.record) == []
    with pytest.raises(UnknownVersion, match="no committed version 1; its head is 0"):
        place(routing, dataset, version=1)
    with pytest.raises(UnknownObject, match="unknown arm 'tape'; there are iceberg, postgres, memory"):
        place(routing, dataset, "tape")


def test_the_primary_answers_and_a_copy_when_asked(routing: Routing, dataset: lakeward.Dataset) -> None:
    dataset.write([{"id": 1}])
    dataset.copy_to("memory")
    assert place(routing, dataset) == ("postgres", 2)
    assert place(routing, dataset, "memory") == ("memory", 2)
    assert place(routing, dataset, version=1) == ("postgres", 1)
    assert [each.arm.name for each in routing.holders(dataset.record)] == ["postgres", "memory"]
    with pytest.raises(ArmNotCurrent, match="that arm never held it, version 2 was asked for") as caught:
        place(routing, dataset, "iceberg")
    assert caught.value.safe == "version 2 is on the postgres and memory arm"
    assert caught.value.fields["holds"] is None


def test_an_arm_that_fell_behind_says_what_it_holds(routing: Routing, dataset: lakeward.Dataset) -> None:
    dataset.write([{"id": 1}])
    dataset.copy_to("memory")
    dataset.write([{"id": 2}])
    assert [each.arm.name for each in routing.holders(dataset.record)] == ["postgres"]
    assert place(routing, dataset, "memory", 2) == ("memory", 2)
    with pytest.raises(ArmNotCurrent, match="that arm holds version 2, version 3 was asked for") as caught:
        place(routing, dataset, "memory")
    assert caught.value.fields["holds"] == 2


def test_an_old_version_that_only_another_arm_holds_is_read_there(
    workspace: lakeward.Workspace,
    routing: Routing,
    dataset: lakeward.Dataset,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As after a flip: the route's primary has the head, and what came before it is elsewhere."""
    dataset.write([{"id": 1}])
    dataset.copy_to("iceberg")
    with workspace.database.driver() as connection, connection.transaction():
        connection.execute("UPDATE lakeward.routes SET mode = 'iceberg_native', primary_arm = 'iceberg'")
    assert place(routing, dataset) == ("iceberg", 2)
    with caplog.at_level(logging.WARNING, "lakeward"):
        assert place(routing, dataset, version=1) == ("postgres", 1)
    assert "version 1 is read from the postgres arm" in caplog.text
    assert dataset.to_arrow(version=1).to_pylist() == [{"id": 1}]
