"""A write is killed where it is judged by what its dataset has to be: nothing of it is there, and it can come again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from support.crashes import Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_a_write_that_is_killed_where_it_is_judged_leaves_nothing(
    ws: lakeward.Workspace, driver: Driver, make: Make, arm: str
) -> None:
    dataset = make(arm)
    dataset.expect([{"row": {"check": "id < 2"}}])
    for point in ("audit", "decide"):
        assert driver.run(write=[[dataset.name, "append", 0, 2, "a"]], fault=["crash", point, 1]).killed()
    refused = driver.run(write=[[dataset.name, "append", 0, 3, "a"]]).answer()
    assert refused["error"] == "ExpectationFailed" and content(dataset) == []
    assert "versions" in driver.run(write=[[dataset.name, "append", 0, 2, "a"]]).answer()
    assert content(dataset) == [(0, "a"), (1, "a")]
    # That it was judged before it was decided stays with the version that died.
    assert [each.status for each in dataset.expectations()] == ["committed", "aborted", "aborted"]
    assert unclean(ws, [dataset.name]) == []
