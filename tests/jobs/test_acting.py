"""A job runs as whoever queued it, with what they may do when it runs; what is scheduled, as the workspace itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

import lakeward
from lakeward.access.guard import acting, closed
from lakeward.access.principal import Principal
from lakeward.access.roles import Role
from lakeward.control.tokens import Shown
from lakeward.errors import ConflictError, Forbidden, UnknownObject
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


def by_token(workspace: lakeward.Workspace, user: str, **narrowed: object) -> tuple[str, Principal]:
    """Make a token, and return its name and who comes with it."""
    made, text = workspace.access.add_token(user, **narrowed)  # type: ignore[arg-type]
    shown = workspace.access.shown(text)
    assert shown is not None
    return made.name, shown.principal


def test_a_narrowed_token_narrows_what_it_has_queued(applied: lakeward.Workspace, queue: Jobs) -> None:
    """To a place, also by a session of it. What the token lost since it lost for its jobs, too; a whole one may all."""
    access = applied.access
    access.set_grant("nia", Role.ADMIN)
    name, narrow = by_token(applied, "nia", within="main.raw.numbers", at_most=Role.OPERATOR)
    token = Shown(narrow, name, "token")
    session = access.shown(access.session(narrow, token, hours=1))
    assert session is not None
    told = []
    for who in (narrow, session.principal, by_token(applied, "nia")[1]):
        with acting(who):
            told.append(queue.add("may", {"dataset": "main.raw.numbers"}, key=str(len(told))))
    Worker(applied, once=True).run()
    assert [queue.get(each.id).result for each in told] == [
        {"there": "operator", "all": None},
        {"there": "operator", "all": None},
        {"there": "admin", "all": "admin"},
    ]


def test_what_a_token_has_queued_does_not_begin_once_it_is_revoked(applied: lakeward.Workspace, queue: Jobs) -> None:
    """Begun anew by another token of the same user, it is that one's."""
    access = applied.access
    access.set_grant("rex", Role.ADMIN)
    name, who = by_token(applied, "rex")
    with acting(who):
        job = queue.add("may", {"dataset": "main.raw.numbers"})
    access.revoke(name)
    Worker(applied, once=True).run()
    found = queue.get(job.id)
    assert found.status == FAILED and found.tries == 1
    assert found.error is not None and found.error["error"] == "Forbidden" and name in found.error["message"]
    with acting(by_token(applied, "rex", at_most=Role.BUILDER)[1]):
        queue.retry(job.id)
    Worker(applied, once=True).run()
    assert queue.get(job.id).result == {"there": "builder", "all": "builder"}


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


def test_who_meets_somebody_elses_waiting_job_is_told_so(applied: lakeward.Workspace, queue: Jobs) -> None:
    """They may not look at it, but they could have queued the same."""
    applied.access.set_grant("oli", Role.OPERATOR, "main.raw.numbers")
    options = {"dataset": "main.raw.numbers", "do": "check"}
    first = queue.add("flip", options)
    with acting(applied.access.principal_of("oli")):
        with pytest.raises(ConflictError, match=rf"job {first.id} .* waits already") as told:
            queue.add("flip", options)
        assert told.value.fields["job"] == first.id
        assert not queue.list()
    queue.cancel(first.id)


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
