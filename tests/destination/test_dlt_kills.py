"""I03: a load of dlt is killed at steps of dlt and of the protocol; run again, no row is lost, and none comes twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeward
from destination.conftest import ARMS
from support.crashes import Driver, unclean
from support.dlt_loads import DONE, EXTRACT, JOB, events, pipeline

STEPS = {
    "postgres": (EXTRACT, "prepare", "decide:committed", DONE),
    "iceberg": (JOB, "prepare:files", "publish", DONE),
}
OCCURRENCE = {"decide:committed": 1, "publish": 1}
TABLES = ("events", "events__parts", "_dlt_loads", "_dlt_version", "_dlt_pipeline_state")


@pytest.fixture(scope="module")
def driver(ws: lakeward.Workspace, loads_url: str, loads_place: Path) -> Iterator[Driver]:
    """Forks the loads that are to die."""
    with Driver(loads_url, loads_place / "warehouse") as running:
        running.preload("support.dlt_loads")
        yield running


@pytest.mark.parametrize("arm", ARMS)
def test_i03_a_killed_load_loses_no_row_and_repeats_none(
    ws: lakeward.Workspace, driver: Driver, loads_place: Path, arm: str
) -> None:
    place = loads_place / "killed"
    pipeline(ws, place, arm).run(events(0))
    for last, step in enumerate(STEPS[arm], start=1):
        how = {"place": str(place), "arm": arm, "last": last, "at": step}
        # The second table of the build, so that one is done.
        case = driver.run(call=["support.dlt_loads", "run"], how=how, fault=["crash", step, OCCURRENCE.get(step, 2)])
        assert case.killed(), (step, case.event == "ended" and case.answer())
        stands = step in ("decide:committed", "publish", DONE)
        assert numbers(ws, arm) == list(range(last + stands)), step
        again = pipeline(ws, place, arm)
        again.run(events(last))
        assert not again.has_pending_data
        assert numbers(ws, arm) == list(range(last + 1)), step
    loads = ws.dataset(f"{arm}.killed._dlt_loads").to_arrow()["load_id"].to_pylist()
    assert len(loads) == len(set(loads)) == len(STEPS[arm]) + 1
    assert unclean(ws, [f"{arm}.killed.{table}" for table in TABLES]) == []


def numbers(ws: lakeward.Workspace, arm: str) -> list[int]:
    """The numbers of the events, each with all of its parts."""
    found = ws.dataset(f"{arm}.killed.events").to_arrow().to_pylist()
    parts = ws.dataset(f"{arm}.killed.events__parts").to_arrow()["_dlt_parent_id"].to_pylist() if len(found) > 1 else []
    assert [parts.count(event["_dlt_id"]) for event in found] == [event["number"] for event in found]
    return sorted(event["number"] for event in found)
