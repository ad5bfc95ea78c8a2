"""A worker in this process runs what is queued: results, errors, locks, cancelling, giving back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import DatabaseUnavailable, UnknownObject
from lakeward.jobs.job import CANCELLED, FAILED, RUNNING, SUCCEEDED, WAITING, Job
from lakeward.jobs.queue import Jobs
from lakeward.jobs.worker import InProcessWorker, Worker
from support.waiting import until

Ended = Callable[[int], Job]


def test_a_build_is_run_and_tells(applied: lakeward.Workspace, queue: Jobs, ended: Ended) -> None:
    with InProcessWorker(applied):
        job = ended(queue.add("build").id)
        assert job.status == SUCCEEDED, job.error
        assert job.result is not None
        assert [each["pipeline"] for each in job.result["builds"]] == ["doubled", "gathered", "summed"]
        again = ended(queue.add("build", {"pipelines": ["summed"]}).id)
    assert again.result is not None and again.result["builds"][0]["up_to_date"]
    assert applied.dataset("main.made.summed").to_arrow().to_pylist() == [{"rows": 5, "total": 20}]
    assert job.progress["doubled: main.made.doubled"] == {"done": 5, "total": None, "unit": "rows"}
    assert [line.line for line in queue.log(job.id)][1:] == [
        "pipeline doubled: main.made.doubled version 1",
        "pipeline gathered: main.made.gathered version 1",
        "pipeline summed: main.made.summed version 1",
        "build is done",
    ]
    first, *others = queue.log(job.id)
    assert list(queue.log(job.id, after=first.id)) == others
    assert job.worker and job.started_at and job.ended_at and job.tries == 1


def test_what_it_is_done_with_is_not_done_again(applied: lakeward.Workspace, queue: Jobs) -> None:
    job = queue.add("rehearse", {"name": "once"})
    Worker(applied, once=True).run()
    assert queue.get(job.id).status == SUCCEEDED
    Worker(applied, once=True).run()
    assert queue.get(job.id).tries == 1


def test_only_the_queues_that_it_serves(applied: lakeward.Workspace, queue: Jobs) -> None:
    job = queue.add("rehearse", {"name": "elsewhere"})
    Worker(applied, queues=["build"], once=True).run()
    assert queue.get(job.id).status == WAITING
    Worker(applied, queues=["upkeep"], once=True).run()
    assert queue.get(job.id).status == SUCCEEDED
    with pytest.raises(UnknownObject, match="did you mean build"):
        Worker(applied, queues=["biuld"])


@pytest.mark.parametrize("error", ["DataError", "SpecError", "Diverged", "ValueError"])
def test_an_error_that_stays_fails_the_job(applied: lakeward.Workspace, queue: Jobs, ended: Ended, error: str) -> None:
    job = queue.add("rehearse", {"error": error})
    Worker(applied, once=True).run()
    found = queue.get(job.id)
    assert (found.status, found.tries) == (FAILED, 1)
    assert found.error is not None and error in found.error["message"]
    queue.retry(job.id)
    Worker(applied, once=True).run()
    assert queue.get(job.id).status == SUCCEEDED, "its second try is told to do well"


@pytest.mark.parametrize("error", ["DatabaseUnavailable", "LockTimeout", "RouteChanged", "CatalogError"])
def test_one_that_may_pass_is_tried_again(applied: lakeward.Workspace, queue: Jobs, error: str) -> None:
    job = queue.add("rehearse", {"error": error, "alone": "held"})
    other = queue.add("rehearse", {"name": "not held up", "alone": "held"})
    Worker(applied, once=True).run()
    found = queue.get(job.id)
    assert (found.status, found.tries) == (WAITING, 1)
    assert found.run_at is not None and found.error is not None and found.error["error"] == error
    assert queue.get(other.id).status == SUCCEEDED, "who waits for its next try holds up nobody"
    queue.retry(job.id)
    Worker(applied, once=True).run()
    assert queue.get(job.id).result == {"tries": 2, "as": ""}
    assert queue.get(job.id).error is None


def test_one_that_does_not_pass_is_given_up(applied: lakeward.Workspace, queue: Jobs) -> None:
    job = queue.add("rehearse", {"error": "LockTimeout", "fails": 99})
    worker = Worker(applied, once=True)
    for _ in range(worker.settings.attempts):
        worker.run()
        if not queue.get(job.id).ended:
            _let_it_be_tried(applied, job)
    assert (queue.get(job.id).status, queue.get(job.id).tries) == (FAILED, worker.settings.attempts)


def test_one_with_a_lock_runs_at_a_time(applied: lakeward.Workspace, queue: Jobs, ended: Ended, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    first, second = (queue.add("rehearse", {"name": name, "alone": "one", "gate": str(gate)}) for name in "ab")
    free = queue.add("rehearse", {"name": "free"})
    with InProcessWorker(applied, width=3):
        assert ended(free.id).status == SUCCEEDED
        assert [queue.get(each.id).status for each in (first, second)] == [RUNNING, WAITING]
        gate.touch()
        assert [ended(each.id).status for each in (first, second)] == [SUCCEEDED] * 2
    started, before = queue.get(second.id).started_at, queue.get(first.id).ended_at
    assert started is not None and before is not None and started >= before


def test_no_more_run_than_it_is_wide(applied: lakeward.Workspace, queue: Jobs, ended: Ended, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    jobs = [queue.add("rehearse", {"name": str(number), "gate": str(gate)}) for number in range(3)]
    with InProcessWorker(applied, width=2):
        until(lambda: [queue.get(each.id).status for each in jobs].count(RUNNING) == 2)
        assert queue.get(jobs[2].id).status == WAITING
        gate.touch()
        assert [ended(each.id).status for each in jobs] == [SUCCEEDED] * 3


def test_one_that_runs_is_cancelled(applied: lakeward.Workspace, queue: Jobs, ended: Ended) -> None:
    with InProcessWorker(applied):
        job = queue.add("rehearse", {"gate": "/never"})
        until(lambda: queue.get(job.id).progress != {})
        queue.cancel(job.id)
        assert ended(job.id).status == CANCELLED
    assert queue.log(job.id)[-1].line == "cancelled"


def test_one_that_does_not_end_in_time_is_given_back(applied: lakeward.Workspace, queue: Jobs, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with InProcessWorker(applied) as here:
        here.worker.settings = here.worker.settings.model_copy(update={"stop_seconds": 0.0})
        job = queue.add("rehearse", {"gate": str(gate)})
        until(lambda: queue.get(job.id).progress != {})
    found = queue.get(job.id)
    assert (found.status, found.run_at) == (WAITING, None)
    gate.touch()
    Worker(applied, once=True).run()
    assert queue.get(job.id).result == {"tries": 2, "as": ""}


def _let_it_be_tried(workspace: lakeward.Workspace, job: Job) -> None:
    with workspace.database.transaction() as connection:
        connection.exec_driver_sql(
            f"UPDATE lakeward.procrastinate_jobs SET scheduled_at = now() - interval '1 s' WHERE id = {job.id}"
        )


def test_it_goes_on_when_its_connections_are_cut(
    applied: lakeward.Workspace, queue: Jobs, ended: Ended, postgres: EmbeddedPostgres
) -> None:
    with InProcessWorker(applied):
        ended(queue.add("rehearse", {"name": "before"}).id)
        with psycopg.connect(postgres.url, autocommit=True) as other:
            cut = other.execute(
                "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE datname LIKE 'test%'"
            ).fetchone()
        assert cut is not None and cut[0] >= 2
        until(lambda: _answers(queue))
        assert ended(queue.add("rehearse", {"name": "after"}).id).status == SUCCEEDED


def _answers(queue: Jobs) -> bool:
    try:
        queue.counts()
    except DatabaseUnavailable:
        return False
    return True
