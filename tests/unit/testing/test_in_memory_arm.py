"""The arm in memory, as a user's test has it: a further arm of a workspace, to copy to and compare with."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from lakeward.errors import EmptyReplace, UnknownObject
from lakeward.storage.table import table_ref
from lakeward.testing import InMemoryArm


def test_a_workspace_takes_it_as_a_further_arm(database_url: str, tmp_path: Path) -> None:
    with lakeward.open(
        tmp_path / "home", database_url=database_url, warehouse=tmp_path / "w", extra_arms=[InMemoryArm]
    ) as workspace:
        assert list(workspace.storage.routing.arms) == ["iceberg", "postgres", "memory"]
        dataset = workspace.create_dataset("main.a.b", {"id": "long", "note": "string"})
        dataset.write([{"id": 1, "note": "x"}, {"id": 2, "note": None}])
        dataset.copy_to("memory")
        assert set(dataset.verify().digests) == {"postgres", "memory"}
        assert dataset.to_arrow(where="note IS NULL", arm="memory").to_pylist() == [{"id": 2, "note": None}]
        assert dataset.locate()["memory"]["version"] == "2"
        with pytest.raises(UnknownObject, match="unknown arm 'memory'"):
            workspace.create_dataset("main.a.c", {"id": "long"}, arm="memory")


def test_without_it_there_are_the_lasting_arms(workspace: lakeward.Workspace) -> None:
    assert list(workspace.storage.routing.arms) == ["iceberg", "postgres"]


def test_what_was_discarded_is_forgotten(database_url: str, tmp_path: Path) -> None:
    with lakeward.open(
        tmp_path / "home", database_url=database_url, warehouse=tmp_path / "w", extra_arms=[InMemoryArm]
    ) as workspace:
        dataset = workspace.create_dataset("main.a.b", {"id": "long"})
        dataset.write([{"id": 1}])
        dataset.copy_to("memory")
        arm = workspace.storage.routing.arm("memory")
        assert isinstance(arm, InMemoryArm)
        assert sorted(arm.versions(table_ref(dataset.record))) == [2]
        arm.discard(table_ref(dataset.record), 2)
        arm.discard(table_ref(dataset.record), 2)
        assert list(arm.versions(table_ref(dataset.record))) == []
        with pytest.raises(EmptyReplace):
            dataset.write([], mode="replace")
