"""What an arm can't do, and the error that it raises instead: nothing of `GAPS` is left to a silent skip."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from conformance.conftest import ARMS, GAPS
from lakeward.testing import InMemoryArm
from support.arms import ArmUnderTest


def gap(arm: str, what: str) -> type[Exception] | None:
    return GAPS.get((arm, what))


def test_every_gap_is_of_an_arm_that_there_is() -> None:
    assert {arm for arm, _ in GAPS} <= set(ARMS)


@pytest.mark.parametrize("name", ARMS)
def test_serves_a_dataset(shared: lakeward.Workspace, name: str) -> None:
    def create() -> lakeward.Dataset:
        return shared.create_dataset(f"main.gaps.served_by_{name}", {"id": "long"}, arm=name)

    refused = gap(name, "serves a dataset")
    if refused is not None:
        with pytest.raises(refused, match=f"unknown arm '{name}'"):
            create()
    else:
        dataset = create()
        dataset.write([{"id": 1}])
        assert (dataset.arm, dataset.row_count) == (name, 1)


@pytest.mark.parametrize("name", ARMS)
def test_outlives_the_workspace(shared_url: str, new_home: Path, name: str) -> None:
    def opened() -> lakeward.Workspace:
        return lakeward.open(
            new_home, database_url=shared_url, warehouse=new_home / "warehouse", extra_arms=[InMemoryArm]
        )

    with opened() as workspace:
        held = ArmUnderTest(workspace, name).create({"id": "long"})
        held.write([{"id": 1}])
    with opened() as workspace:
        dataset = workspace.dataset(held.created.name)
        refused = gap(name, "outlives the workspace")
        if refused is not None:
            with pytest.raises(refused, match="was in the memory of a process that has ended"):
                dataset.to_arrow(arm=name)
        else:
            assert dataset.to_arrow(arm=name).to_pylist() == [{"id": 1}]
