"""Jobs are added, joined, looked at, cancelled and begun again; no worker is needed for that."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

import lakeward
from lakeward.errors import ConflictError, UnknownObject, UsageError
from lakeward.jobs.job import CANCELLED, STATUSES, WAITING
from lakeward.jobs.kind import JobOptions
from lakeward.jobs.known_kinds import job_kinds
from lakeward.jobs.queue import Jobs


def test_a_kind_is_a_file() -> None:
    kinds = job_kinds()
    assert set(kinds) == {"build", "flip", "maintain", "may", "move", "recheck", "recover", "rehearse", "sync"}
    for name, kind in kinds.items():
        assert kind.name == name and kind.about().endswith(".")
        assert issubclass(kind.options, JobOptions)
        assert all(field.description for field in kind.options.model_fields.values())


def test_a_job_is_kept_as_it_was_asked_for(queue: Jobs) -> None:
    at = datetime(2030, 1, 1, tzinfo=UTC)
    job = queue.add("rehearse", {"name": 'Ünïcode "x"', "alone": "l" * 5000}, by="somebody", run_at=at)
    assert queue.get(job.id) == job
    assert (job.kind, job.status, job.added_by, job.run_at, job.queue) == (
        "rehearse",
        WAITING,
        "somebody",
        at,
        "upkeep",
    )
    assert job.options["name"] == 'Ünïcode "x"'
    assert job.lock is not None and len(job.lock) < 200
    assert job.added_at is not None and job.started_at is None and not job.ended
    assert job.result is None and job.error is None and job.progress == {}


def test_one_that_waits_is_enough(queue: Jobs) -> None:
    first = queue.add("rehearse", {"name": "twice"})
    assert queue.add("rehearse", {"name": "twice"}).id == first.id
    assert queue.add("rehearse", {"name": "twice"}, key="another").id != first.id
    queue.cancel(first.id)
    assert queue.add("rehearse", {"name": "twice"}).id != first.id


def test_of_many_at_once_one_is_added(queue: Jobs) -> None:
    with ThreadPoolExecutor(6) as pool:
        jobs = list(pool.map(lambda _: queue.add("rehearse", {"name": "at once"}), range(6)))
    assert len({job.id for job in jobs}) == 1


@pytest.mark.parametrize(
    ("kind", "options", "says"),
    [
        ("biuld", {}, "did you mean build"),
        ("build", {"pipline": "a"}, "did you mean pipelines"),
        ("rehearse", {"nam": "a"}, "did you mean name"),
        ("build", {"jobs": 99}, "option jobs"),
        ("build", {"pipelines": ["nothing"]}, "unknown pipeline"),
        ("sync", {"source": "nowhere"}, "nowhere"),
        ("sync", {}, "option source"),
        ("flip", {"dataset": "main.no.such"}, "main.no.such"),
        ("flip", {"dataset": "main.a.b", "do": "complete"}, "confirmed"),
        ("flip", {"dataset": "main.a.b", "stage": "verify"}, "a stage is named"),
        ("rehearse", {"name": "a\0b"}, "NUL"),
    ],
)
def test_what_can_not_be_meant_is_refused(queue: Jobs, kind: str, options: dict[str, object], says: str) -> None:
    before = queue.counts()
    with pytest.raises(UsageError, match=says):
        queue.add(kind, options)
    assert queue.counts() == before


def test_a_time_has_a_zone(queue: Jobs) -> None:
    with pytest.raises(UsageError, match="no time zone"):
        queue.add("rehearse", run_at=datetime(2030, 1, 1))


def test_lists_are_newest_first_in_pages(queue: Jobs) -> None:
    added = [queue.add("rehearse", {"name": f"listed {number}"}, by="lister").id for number in range(3)]
    page = queue.list(by="lister", most=2)
    assert [job.id for job in page] == added[:0:-1]
    assert [job.id for job in queue.list(by="lister", before=page[-1].id)] == added[:1]
    queue.cancel(added[1])
    assert [job.id for job in queue.list(by="lister", statuses=[CANCELLED])] == [added[1]]
    assert queue.counts()["rehearse", CANCELLED] >= 1
    assert queue.list(kind="flip") == []
    for wrong in ({"statuses": ["todo"]}, {"kind": "biuld"}):
        with pytest.raises(UnknownObject):
            queue.list(**wrong)  # type: ignore[arg-type]
    assert "waiting" in STATUSES


def test_cancel_and_retry(queue: Jobs) -> None:
    job = queue.add("rehearse", {"name": "changed"}, run_at=datetime.now(UTC) + timedelta(days=1))
    assert queue.retry(job.id).run_at is None, "its time is now"
    assert queue.cancel(job.id).status == CANCELLED
    assert queue.cancel(job.id).status == CANCELLED
    other = queue.add("rehearse", {"name": "changed"})
    with pytest.raises(ConflictError, match="another one that does the same waits"):
        queue.retry(job.id)
    queue.cancel(other.id)
    assert queue.retry(job.id).status == WAITING
    with pytest.raises(UnknownObject, match="there is no job 999999"):
        queue.get(999_999)


def test_every_change_is_in_the_audit_log(queue: Jobs, workspace: lakeward.Workspace) -> None:
    job = queue.add("rehearse", {"name": "audited"})
    queue.cancel(job.id)
    queue.retry(job.id)
    with workspace.database.transaction() as connection:
        found = connection.exec_driver_sql(
            f"SELECT action FROM lakeward.audit_log WHERE subject = 'job {job.id}' ORDER BY id"
        )
        assert [row.action for row in found] == ["job.add", "job.cancel", "job.retry"]


def test_what_ended_long_ago_is_forgotten(queue: Jobs) -> None:
    old, waits = queue.add("rehearse", {"name": "old"}), queue.add("rehearse", {"name": "waits"})
    queue.cancel(old.id)
    queue.forget(1)
    assert queue.get(old.id).status == CANCELLED
    queue.forget(0)
    with pytest.raises(UnknownObject):
        queue.get(old.id)
    assert queue.get(waits.id).status == WAITING
