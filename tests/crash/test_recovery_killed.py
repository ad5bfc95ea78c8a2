"""Recovery itself is killed at its steps, done by many at once, and done for an owner that is dead or only silent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from support.crashes import SCRIPT, Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]
ARMS = ("postgres", "iceberg")


def old(dataset: lakeward.Dataset) -> list[tuple[int, str]]:
    dataset.write([{"id": number, "note": "old"} for number in range(3)])
    return [(number, "old") for number in range(3)]


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("point", ["prepare", "audit", "decide"])
def test_killed_after_it_removed_what_was_prepared(
    ws: lakeward.Workspace, driver: Driver, make: Make, arm: str, point: str
) -> None:
    dataset = make(arm)
    before = old(dataset)
    assert driver.run(write=[[dataset.name, "append", 3, 2, "new"]], fault=["crash", point, 1]).killed()
    for _ in range(2):
        assert driver.run(recover=True, fault=["crash", "recover:discarded", 1]).killed()
        assert content(dataset) == before
    assert driver.run(recover=True).answer() == {"recovered": [[dataset.name, 2, "aborted"]]}
    assert content(dataset) == before
    assert unclean(ws, [dataset.name]) == []


def test_killed_after_it_published(ws: lakeward.Workspace, driver: Driver, make: Make) -> None:
    dataset = make("iceberg")
    before = old(dataset)
    assert driver.run(write=[[dataset.name, "append", 3, 1, "new"]], fault=["crash", "publish", 1]).killed()
    for _ in range(2):
        assert driver.run(recover=True, fault=["crash", "publish:moved", 1]).killed()
        assert content(dataset) == [*before, (3, "new")]
    assert driver.run(recover=True).answer() == {"recovered": [[dataset.name, 2, "published"]]}
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("arm", ARMS)
def test_a_dead_owner_on_this_machine_is_not_waited_for(
    ws: lakeward.Workspace, driver: Driver, make: Make, arm: str
) -> None:
    dataset = make(arm)
    before = old(dataset)
    assert driver.run(write=[[dataset.name, "append", 3, 1, "lost"]], fault=["crash", "decide", 1]).killed()
    started = time.monotonic()
    dataset.write([{"id": 9, "note": "next"}])
    assert time.monotonic() - started < ws.settings.values.ledger.lease_seconds / 3
    assert content(dataset) == [*before, (9, "next")]
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("point", ["prepare:committed", "publish"])
def test_ten_processes_recover_at_once(ws: lakeward.Workspace, driver: Driver, make: Make, point: str) -> None:
    datasets = [make("iceberg") for _ in range(3)]
    for dataset in datasets:
        old(dataset)
        assert driver.run(write=[[dataset.name, "append", 3, 1, "new"]], fault=["crash", point, 1]).killed()
    answers = [case.answer() for case in driver.run_together([{"recover": True}] * 10)]
    assert all("recovered" in answer for answer in answers), answers
    found = [tuple(each) for answer in answers for each in answer["recovered"]]
    # Publishing may be done twice, which changes nothing; aborting is done by one.
    outcome = "published" if point == "publish" else "aborted"
    assert set(found) == {(dataset.name, 2, outcome) for dataset in datasets}
    assert outcome == "published" or len(found) == len(datasets)
    assert unclean(ws, [dataset.name for dataset in datasets]) == []
    expected = [(number, "old") for number in range(3)] + ([(3, "new")] if point == "publish" else [])
    assert [content(dataset) for dataset in datasets] == [expected] * 3


@pytest.mark.parametrize("arm", ARMS)
def test_ten_processes_write_at_once(ws: lakeward.Workspace, driver: Driver, make: Make, arm: str) -> None:
    """C04: whatever the order, every row is there once."""
    dataset = make(arm)
    cases = [{"write": [[dataset.name, "append", 10 * number, 3, "new"]]} for number in range(10)]
    answers = [case.answer() for case in driver.run_together(cases)]
    assert sorted(version for answer in answers for version in answer["versions"]) == list(range(1, 11))
    assert sorted(content(dataset)) == [(10 * number + row, "new") for number in range(10) for row in range(3)]
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize("arm", ARMS)
def test_killed_from_outside_at_any_moment(
    ws: lakeward.Workspace, make: Make, crash_url: str, crash_warehouse: Path, arm: str
) -> None:
    """Not at a step: a process that appends and replaces without end is killed whenever the clock says so."""
    dataset = make(arm)
    dataset.write([{"id": 0, "note": "0"}])
    for delay in (0.05, 0.15, 0.25):
        process = _endless_writer(crash_url, crash_warehouse, dataset.name)
        time.sleep(delay)
        process.kill()
        process.wait()
        answer = ws.recover()
        assert all(each.outcome in ("aborted", "published") for each in answer)
        assert unclean(ws, [dataset.name]) == []
        notes = [note for _, note in content(dataset)]
        assert len(notes) % 3 == 0 or notes == ["0"], "each write brings three rows of one note"
        assert all(notes.count(note) == 3 for note in set(notes) - {"0"})


def _endless_writer(url: str, warehouse: Path, name: str) -> subprocess.Popen[bytes]:
    """Start a process that writes until it is killed, and return when it has committed a first version."""
    process = subprocess.Popen(
        [sys.executable, str(SCRIPT), json.dumps({"url": url, "warehouse": str(warehouse), "endless": name})],
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(Path(lakeward.__file__).parents[1]), str(SCRIPT.parents[1])]),
        },
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    return process
