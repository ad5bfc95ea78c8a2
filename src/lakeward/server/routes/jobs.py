"""Jobs: work that is queued, how far it is, what it tells, and what came of it."""

from __future__ import annotations

from enum import StrEnum
from http import HTTPStatus
from typing import Annotated

from fastapi import Header, Path, Query, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse
from starlette.concurrency import run_in_threadpool

from lakeward.access.guard import may, principal
from lakeward.errors import UnknownObject
from lakeward.jobs.job import STATUSES
from lakeward.jobs.job import Job as QueuedJob
from lakeward.jobs.known_kinds import job_kinds
from lakeward.server.documents.jobs import Job, JobKind, JobKindList, JobLog, JobPage, LogLine, NewJob, Queued
from lakeward.server.event_stream import DESCRIBED, event_stream
from lakeward.server.number_pages import Before, Limit, cut
from lakeward.server.pages import LARGEST
from lakeward.server.presence import presence_of
from lakeward.server.queueing import queued
from lakeward.server.rooms import Here, Rooms
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("jobs")

READ, RUN = needs("job.read", anywhere=True), needs("job.run", anywhere=True)

Number = Annotated[int, Path(ge=0, le=LARGEST, description="of the job", examples=[17])]
After = Annotated[int, Query(ge=0, le=LARGEST, description="only lines behind this one")]

JobStatus = StrEnum("JobStatus", {each: each for each in STATUSES})  # type: ignore[misc]


@router.get("/jobs", summary="List jobs", dependencies=[READ])
def list_jobs(
    rooms: Here,
    status: Annotated[JobStatus | None, Query(description="of this status only")] = None,
    kind: Annotated[str | None, Query(description="of this kind only")] = None,
    by: Annotated[str | None, Query(description="asked for by this one only")] = None,
    limit: Limit = 100,
    page: Before = None,
) -> JobPage:
    """Jobs, newest first; those that one has asked for oneself, where one has no role in the whole workspace."""
    mine = None if may("job.read") else principal().name
    if mine is not None and by not in (None, mine):
        return JobPage(jobs=[], next=None)
    statuses = [status.value] if status is not None else []
    found = rooms.queue.list(statuses=statuses, kind=kind, by=mine or by, before=page, most=limit + 1)
    shown, following = cut(found, limit, lambda each: each.id)
    return JobPage(jobs=[Job.of(each) for each in shown], next=following)


@router.get("/jobs/kinds", summary="List kinds of jobs", dependencies=[READ])
def list_job_kinds() -> JobKindList:
    """Every kind of job, with the JSON schema of its options."""
    kinds = [
        JobKind.plain(
            name=name,
            about=kind.about(),
            queue=kind.queue,
            action=kind.action,
            options=kind.options.model_json_schema(),
        )
        for name, kind in job_kinds().items()
    ]
    return JobKindList(kinds=kinds)


@router.post("/jobs", summary="Queue a job", dependencies=[RUN], status_code=HTTPStatus.ACCEPTED, response_model=Queued)
def add_job(rooms: Here, wanted: NewJob) -> JSONResponse:
    """Queue a job. If one with its key waits already, that one is answered with."""
    return queued(rooms, wanted.kind, wanted.options, run_at=wanted.run_at, key=wanted.key)


@router.get("/jobs/{number}", summary="Show a job", dependencies=[READ])
def show_job(rooms: Here, number: Number) -> Job:
    """How far it is, and what came of it."""
    return Job.of(_seen(rooms, number))


@router.get("/jobs/{number}/log", summary="Read a job's log", dependencies=[READ])
def read_job_log(rooms: Here, number: Number, after: After = 0, limit: Limit = 1000) -> JobLog:
    """Lines of its log, oldest first."""
    lines = rooms.queue.log(_seen(rooms, number).id, after=after, most=limit)
    return JobLog(lines=[LogLine.of(each) for each in lines], last=lines[-1].id if lines else after)


@router.post("/jobs/{number}/cancel", summary="Cancel a job", dependencies=[RUN])
def cancel_job(rooms: Here, number: Number) -> Job:
    """Take it out of the queue, or ask it to end, if it runs. One that has ended stays as it is."""
    return Job.of(rooms.queue.cancel(_seen(rooms, number).id))


@router.post("/jobs/{number}/retry", summary="Queue a job again", dependencies=[RUN])
def retry_job(rooms: Here, number: Number) -> Job:
    """Queue a job again that failed or was cancelled; of one that waits for its next try, make that now."""
    return Job.of(rooms.queue.retry(_seen(rooms, number).id))


@router.get(
    "/jobs/{number}/events",
    summary="Follow a job",
    dependencies=[READ],
    response_class=StreamingResponse,
    responses={HTTPStatus.OK: DESCRIBED},
)
async def follow_job(
    rooms: Here,
    request: Request,
    number: Number,
    last_event_id: Annotated[
        int | None, Header(ge=0, le=LARGEST, description="the last line of its log that was seen")
    ] = None,
) -> Response:
    """Follow a job, as server-sent events: `job` whenever it changes, `log` for each line of its log, then `ended`."""
    job = await run_in_threadpool(_seen, rooms, number)

    def may_still() -> bool:
        return _seen(rooms, number).id == number

    events = rooms.job_watch.follow(job, last_event_id or 0)
    return event_stream(presence_of(request).follow(events, may_still))


def _seen(rooms: Rooms, number: int) -> QueuedJob:
    """Return a job, if whoever asks may see it: what one has asked for oneself, one may."""
    job = rooms.queue.get(number)
    if not may("job.read") and job.principal != principal().name:
        raise UnknownObject(f"there is no job {number}", safe="nothing was changed", job=number)
    return job
