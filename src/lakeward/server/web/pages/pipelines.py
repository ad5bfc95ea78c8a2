"""Pipelines: what is applied, the graph of one, its builds as they run, and a change planned before it is applied."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response

from lakeward.access.guard import may
from lakeward.errors import LakewardError, UnknownObject, UsageError
from lakeward.jobs.job import RUNNING, WAITING, Job
from lakeward.jobs.queue import Jobs
from lakeward.pipelines.plan import Plan
from lakeward.pipelines.registry import Applied
from lakeward.pipelines.text import difference, in_place, read, written
from lakeward.server.rooms import Here, Rooms
from lakeward.server.rules import needs
from lakeward.server.web.messages import Said, elsewhere
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page
from lakeward.server.web.pipeline_view import drawn, nodes_of, progress_of
from lakeward.server.web.words import in_path
from lakeward.wiring.actor import actor

PLACE = Place("Pipelines", "/pipelines", 30, "pipeline.read")

VERSIONS = 10
"""How many of the newest versions of its outputs are shown."""

router = APIRouter()


@router.get("/pipelines", dependencies=[needs("pipeline.read", anywhere=True)])
def pipelines(request: Request, rooms: Here) -> Response:
    """Show every applied pipeline, and what a build would do."""
    service = rooms.workspace.pipelines
    applied = service.applied()
    try:
        pending, trouble = {pipeline.name: reason for pipeline, reason in service.pending()}, None
    except LakewardError as error:
        # A source that is gone, say: the list is still of use, and says so.
        pending, trouble = {}, Said.of(error)
    jobs = {name: job for job in _builds(rooms.queue) for name in job.options["pipelines"]}
    return page(
        request,
        "pipelines.html",
        part="list",
        applied=list(applied.values()),
        pending=pending,
        trouble=trouble,
        jobs=jobs,
        may_build=may("pipeline.build"),
    )


@router.post("/pipelines", dependencies=[needs("pipeline.build")])
def build_all(request: Request, rooms: Here) -> Response:
    """Queue a build of all that is not up to date."""
    job = rooms.queue.add("build", {})
    return elsewhere(request, f"/jobs/{job.id}")


@router.get("/pipelines/{name:path}", dependencies=[needs("pipeline.read", anywhere=True)])
def pipeline(request: Request, rooms: Here, name: str, edit: Annotated[bool, Query()] = False) -> Response:
    """Show one pipeline."""
    found = _applied(rooms, name)
    text = written(found.pipeline) if edit and found.pipeline is not None else None
    return _shown(request, rooms, found, text=text)


@router.post("/pipelines/{name:path}", dependencies=[needs("pipeline.build")])
def act(
    request: Request,
    rooms: Here,
    name: str,
    do: Annotated[str, Form()],
    text: Annotated[str, Form()] = "",
) -> Response:
    """Build it, stop its build, or plan and apply another text of it."""
    found = _applied(rooms, name)
    here = f"/pipelines/{in_path(name)}"
    match do:
        case "build" | "full":
            rooms.queue.add("build", {"pipelines": [name], "full": do == "full"})
            return elsewhere(request, here)
        case "stop":
            for job in _builds(rooms.queue):
                if list(job.options["pipelines"]) == [name]:
                    rooms.queue.cancel(job.id)
            return elsewhere(request, here, Said("info", "It was asked to stop. What is built stands."))
        case "plan" | "apply":
            service = rooms.workspace.pipelines
            changed = read(text, found.pipeline)
            project = in_place(service.applied(), changed)
            if do == "plan":
                return _shown(request, rooms, found, text=text, plan=service.plan(project))
            service.apply(project, actor())
            return elsewhere(
                request, f"/pipelines/{in_path(changed.name)}", Said("done", f"Pipeline {changed.name} is applied.")
            )
    raise UsageError(f"a pipeline can't be told to {do!r}", safe="nothing was changed")


def _shown(
    request: Request, rooms: Rooms, found: Applied, *, text: str | None = None, plan: Plan | None = None
) -> Response:
    pipeline, workspace = found.pipeline, rooms.workspace
    builds = [each for each in _builds(rooms.queue) if found.name in (each.options["pipelines"] or [found.name])]
    job = builds[0] if builds else None
    outputs = pipeline.spec.outputs if pipeline is not None else []
    known = workspace.tree.find_each([output.dataset for output in outputs])
    before = written(pipeline) if pipeline is not None and plan is not None else ""
    return page(
        request,
        "pipeline.html",
        part="state",
        applied=found,
        outputs=outputs,
        known=known,
        nodes=nodes_of(pipeline) if pipeline is not None else [],
        graph=drawn(pipeline) if pipeline is not None else None,
        job=job,
        last=_last(rooms.queue, found.name) if job is None else None,
        progress=progress_of(job, found.name),
        writes=workspace.transactions(pipeline=found.name, most=VERSIONS),
        may_build=may("pipeline.build"),
        may_apply=may("pipeline.apply"),
        text=text,
        plan=plan,
        difference=difference(before, text) if plan is not None and text is not None else [],
    )


def _applied(rooms: Rooms, name: str) -> Applied:
    applied = rooms.workspace.pipelines.applied()
    if name not in applied:
        raise UnknownObject.among("pipeline", name, applied, pipeline=name)
    return applied[name]


def _builds(queue: Jobs) -> list[Job]:
    """Return the builds that run or wait, the oldest first."""
    return list(reversed(queue.list(statuses=(WAITING, RUNNING), kind="build")))


def _last(queue: Jobs, name: str) -> Job | None:
    return next((each for each in queue.list(kind="build") if name in each.options["pipelines"]), None)
