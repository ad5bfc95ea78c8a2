"""Workers that are killed, stopped or are several: nothing is lost, and nothing done twice."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy

import lakeward
from lakeward.jobs import stalled
from lakeward.jobs.job import FAILED, RUNNING, SUCCEEDED, WAITING
from lakeward.jobs.queue import Jobs
from lakeward.jobs.worker import Worker
from support.crashes import Driver, unclean
from support.waiting import until

WORK: dict[str, Any] = {"call": ["support.workers", "work"]}


@pytest.fixture(scope="module")
def driver(applied: lakeward.Workspace, database_url: str, warehouse: Path) -> Iterator[Driver]:
    """Forks workers."""
    with Driver(database_url, warehouse) as running:
        running.preload("support.workers")
        yield running


@pytest.mark.parametrize(
    "killed",
    [
        {"how": {"step": "job:begun"}},
        {"fault": ["crash", "prepare:chunk", 1], "how": {}},
        {"fault": ["crash", "decide", 1], "how": {}},
        {"fault": ["crash", "decide:committed", 1], "how": {}},
        {"how": {"step": "job:ran"}},
        {"how": {"step": "job:kept"}},
    ],
    ids=["begun", "preparing", "before-decide", "decided", "ran", "kept"],
)
def test_one_that_is_killed_in_a_build_loses_nothing_and_doubles_nothing(
    applied: lakeward.Workspace, queue: Jobs, driver: Driver, killed: dict[str, Any]
) -> None:
    """A full build is a version each time, so that one that is done twice is seen."""
    name = "main.made.gathered"
    before = writes(applied, name)
    job = queue.add("build", {"pipelines": ["gathered"], "full": True})
    assert driver.run(**WORK, **killed).killed()
    assert queue.get(job.id).status == RUNNING
    Worker(applied, once=True).run()
    assert queue.get(job.id).status == SUCCEEDED, queue.get(job.id).error
    assert writes(applied, name) == before + 1
    assert sorted(applied.dataset(name).to_arrow()["id"].to_pylist()) == list(range(5))
    assert unclean(applied, [name]) == []
    assert any("its worker" in line.line and "another one goes on" in line.line for line in queue.log(job.id))


def test_one_that_dies_with_its_machine_is_known_by_its_silence(
    applied: lakeward.Workspace, queue: Jobs, driver: Driver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can look at its process. Its job is taken over, and what it was writing is free when its lease ends."""
    name, settings = "main.made.gathered", tmp_path / "short.toml"
    settings.write_text("[ledger]\nlease_seconds = 1\n", encoding="utf-8")
    before = writes(applied, name)
    job = queue.add("build", {"pipelines": ["gathered"], "full": True})
    assert driver.run(**WORK, fault=["crash", "prepare:chunk", 1], how={}, settings=str(settings)).killed()
    for table in ("leases", "job_states"):
        moved = f"""UPDATE lakeward.{table} SET owner = owner || '{{"boot": "another", "host": "elsewhere"}}'"""
        applied.database.fetch(sqlalchemy.text(f"{moved} WHERE owner IS NOT NULL RETURNING 1"))
    Worker(applied, once=True).run()
    assert queue.get(job.id).status == RUNNING
    monkeypatch.setattr(stalled, "SILENT_SECONDS", 0)
    Worker(applied, once=True).run()
    assert queue.get(job.id).status == SUCCEEDED, queue.get(job.id).error
    assert any("elsewhere" in line.line and "another one goes on" in line.line for line in queue.log(job.id))
    assert (writes(applied, name), applied.dataset(name).to_arrow().num_rows) == (before + 1, 5)
    assert unclean(applied, [name]) == []


def test_a_job_that_its_workers_die_of_is_given_up(applied: lakeward.Workspace, queue: Jobs, driver: Driver) -> None:
    job = queue.add("rehearse", {"name": "deadly"})
    attempts = applied.settings.values.jobs.attempts
    for _ in range(attempts):
        assert driver.run(**WORK, how={"step": "job:begun"}).killed()
    Worker(applied, once=True).run()
    found = queue.get(job.id)
    assert found.status == FAILED and found.error is not None
    assert found.error["error"] == "WorkerDied" and found.error["fields"]["deaths"] == attempts


def test_two_share_the_jobs_of_a_workspace(
    applied: lakeward.Workspace, queue: Jobs, driver: Driver, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    jobs = [queue.add("rehearse", {"name": str(number), "gate": str(gate)}) for number in range(4)]
    how = {"once": False, "width": 2}
    with driver.running(**WORK, how=how) as one, driver.running(**WORK, how=how) as other:
        until(lambda: all(queue.get(each.id).progress for each in jobs))
        workers = [queue.get(each.id).worker for each in jobs]
        gate.touch()
        until(lambda: all(queue.get(each.id).ended for each in jobs))
        for pid in (one, other):
            os.kill(pid, signal.SIGTERM)
    assert {worker: workers.count(worker) for worker in workers} == {
        f"{os.uname().nodename}, pid {pid}": 2 for pid in (one, other)
    }
    assert {queue.get(each.id).status for each in jobs} == {SUCCEEDED}
    assert driver.ended["event"] == "ended" and driver.ended["code"] == 0


def test_one_that_is_told_to_end_gives_back_what_does_not_end(
    applied: lakeward.Workspace, queue: Jobs, driver: Driver, tmp_path: Path, settings_that_hurry: str
) -> None:
    gate = tmp_path / "gate"
    job = queue.add("rehearse", {"name": "long", "gate": str(gate)})
    with driver.running(**WORK, how={"once": False}, settings=settings_that_hurry) as pid:
        until(lambda: queue.get(job.id).progress != {})
        os.kill(pid, signal.SIGTERM)
    assert driver.ended["event"] == "ended" and driver.ended["code"] == 0
    assert queue.get(job.id).status == WAITING
    gate.touch()
    Worker(applied, once=True).run()
    assert queue.get(job.id).result == {"tries": 2, "as": ""}


def test_one_that_is_told_to_end_lets_a_job_end(
    applied: lakeward.Workspace, queue: Jobs, driver: Driver, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    job = queue.add("rehearse", {"name": "short", "gate": str(gate)})
    later = queue.add("rehearse", {"name": "later", "gate": str(gate)})
    with driver.running(**WORK, how={"once": False, "width": 1}) as pid:
        until(lambda: queue.get(job.id).progress != {})
        os.kill(pid, signal.SIGTERM)
        gate.touch()
    assert [queue.get(each.id).status for each in (job, later)] == [SUCCEEDED, WAITING]


def writes(workspace: lakeward.Workspace, name: str) -> int:
    """Return how many writes to a dataset were committed."""
    found = workspace.tree.find(name)
    return 0 if found is None else sum(each.status == "committed" for each in workspace.dataset(name).history())


@pytest.fixture
def settings_that_hurry(tmp_path: Path) -> str:
    """A worker that is to end gives back at once what it runs."""
    path = tmp_path / "hurry.toml"
    path.write_text("[jobs]\nstop_seconds = 0\n", encoding="utf-8")
    return str(path)
