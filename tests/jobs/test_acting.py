"""A job runs as whoever queued it, with what they may do when it runs; what is scheduled, as the workspace itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lakeward
from lakeward.access.guard import acting, closed
from lakeward.access.roles import Role
from lakeward.errors import Forbidden, UnknownObject
from lakeward.jobs.job import FAILED, SUCCEEDED
from lakeward.jobs.queue import Jobs
from lakeward.jobs.worker import Worker


def test_as_whoever_queued_it(applied: lakeward.Workspace, queue: Jobs) -> None:
    """In a process whose door is shut, as a server's: whoever nobody has named may do nothing there."""
    applied.access.set_grant("ana", Role.BUILDER)
    with acting(applied.access.principal_of("ana")):
        job = queue.add("build", {"pipelines": ["doubled"], "full": True, "jobs": 2})
        said = queue.add("rehearse", {"name": "who"})
    assert (job.added_by, job.principal) == ("ana", "ana")
    with closed():
        Worker(applied, once=True).run()
    assert queue.get(job.id).status == SUCCEEDED, queue.get(job.id).error
    assert queue.get(said.id).result == {"tries": 1, "as": "ana"}
    assert applied.dataset("main.made.doubled").record.row_count == 5


def test_what_was_taken_away_since_counts(applied: lakeward.Workspace, queue: Jobs) -> None:
    applied.access.set_grant("bob", Role.BUILDER)
    with acting(applied.access.principal_of("bob")):
        job = queue.add("build", {"pipelines": ["doubled"], "full": True})
    applied.access.remove_grant("bob")
    Worker(applied, once=True).run()
    found = queue.get(job.id)
    assert found.status == FAILED and found.tries == 1
    assert found.error is not None and found.error["error"] == "Forbidden"


def test_who_may_not_do_it_may_not_queue_it(applied: lakeward.Workspace, queue: Jobs) -> None:
    applied.access.set_grant("vic", Role.VIEWER)
    applied.access.set_grant("oda", Role.OPERATOR, "main.raw.numbers")
    job = queue.add("rehearse", {"name": "of the owner"})
    with acting(applied.access.principal_of("vic")):
        assert queue.get(job.id).id == job.id, "they may see all of the workspace"
        for act in (lambda: queue.add("build"), lambda: queue.cancel(job.id)):
            with pytest.raises(Forbidden):
                act()
    with acting(applied.access.principal_of("oda")):
        own = queue.add("flip", {"dataset": "main.raw.numbers", "do": "check"})
        assert [each.id for each in queue.list()] == [own.id]
        with pytest.raises(UnknownObject):
            queue.get(job.id)
        queue.cancel(own.id)


def test_a_token_for_one_place_shows_jobs_about_it(applied: lakeward.Workspace, queue: Jobs) -> None:
    """Others of the same user name datasets that the token is not for."""
    applied.access.set_grant("una", Role.ADMIN)
    whole = applied.access.principal_of("una")
    with acting(whole):
        first = queue.add("flip", {"dataset": "main.raw.numbers", "do": "check"})
        others = [queue.add("build", {"pipelines": ["doubled"]}), queue.add("move", {"names": ["main.made"]})]
        last = queue.add("flip", {"dataset": "main.raw.numbers", "do": "revert"})
    with acting(replace(whole, within=applied.tree.dataset("main.raw.numbers").slugs)):
        assert [each.id for each in queue.list()] == [last.id, first.id]
        assert [each.id for each in queue.list(most=1)] == [last.id]
        assert [each.id for each in queue.list(most=1, before=last.id)] == [first.id], "behind those that are hidden"
        assert queue.get(first.id).id == first.id
        for each in others:
            with pytest.raises(UnknownObject):
                queue.get(each.id)
    for each in (first, *others, last):
        queue.cancel(each.id)
