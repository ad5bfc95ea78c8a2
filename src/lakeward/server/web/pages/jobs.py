"""Jobs: what waits, runs and has ended, and the log of one while it runs."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response

from lakeward.access.guard import may
from lakeward.errors import UsageError
from lakeward.jobs.job import STATUSES
from lakeward.jobs.known_kinds import job_kinds, kind_named
from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.messages import elsewhere
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page

PLACE = Place("Jobs", "/jobs", 60, "job.read")

MOST = 50
LINES = 500

router = APIRouter()


@router.get("/jobs", dependencies=[needs("job.read")])
def jobs(
    request: Request,
    rooms: Here,
    status: Annotated[str | None, Query()] = None,
    kind: Annotated[str | None, Query()] = None,
    before: Annotated[int | None, Query()] = None,
) -> Response:
    """Show jobs, newest first."""
    found = rooms.queue.list(statuses=(status,) if status else (), kind=kind or None, before=before, most=MOST + 1)
    return page(
        request,
        "jobs.html",
        part="list",
        jobs=found[:MOST],
        more=found[MOST - 1].id if len(found) > MOST else None,
        chosen=status,
        kind=kind,
        before=before,
        statuses=STATUSES,
        kinds=sorted(job_kinds()),
        live=any(not each.ended for each in found),
    )


@router.get("/jobs/{number}", dependencies=[needs("job.read")])
def job(request: Request, rooms: Here, number: int) -> Response:
    """Show one job, with its log."""
    found = rooms.queue.get(number)
    lines = rooms.queue.log(number, most=LINES)
    return page(
        request,
        "job.html",
        part="state",
        job=found,
        about=kind_named(found.kind).about() if found.kind in job_kinds() else "",
        lines=lines,
        cut=len(lines) == LINES,
        may_run=may("job.run"),
    )


@router.post("/jobs/{number}", dependencies=[needs("job.run")])
def act(request: Request, rooms: Here, number: int, do: Annotated[str, Form()]) -> Response:
    """Cancel a job, or queue it again."""
    match do:
        case "cancel":
            rooms.queue.cancel(number)
        case "retry":
            rooms.queue.retry(number)
        case _:
            raise UsageError(f"a job can't be told to {do!r}", safe="nothing was changed")
    return elsewhere(request, f"/jobs/{number}")
