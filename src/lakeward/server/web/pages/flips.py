"""Flips: those that go on, and the page of one, where each stage is seen and done."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Form, Query, Request, Response

from lakeward.access.guard import may
from lakeward.errors import ConflictError, UsageError
from lakeward.jobs.job import RUNNING, WAITING, Job
from lakeward.jobs.queue import Jobs
from lakeward.migration.flip_status import FlipStatus
from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.flip_view import act_named, actions_of, acts, lights
from lakeward.server.web.messages import Said, elsewhere
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page
from lakeward.server.web.words import in_path

PLACE = Place("Flips", "/flips", 40, "flip.read")

COMPARISONS = 12
"""How many of the newest comparisons are shown."""

router = APIRouter()


@router.get("/flips", dependencies=[needs("flip.read", anywhere=True)])
def flips(request: Request, rooms: Here) -> Response:
    """Show the flips that go on, those that have ended lately, and what could be flipped."""
    workspace = rooms.workspace
    names = {each.id: each.name for each in workspace.tree.datasets()}
    records = [each for each in workspace.flips.all(ended=True, most=200) if each.dataset_id in names]
    going_on = [workspace.flip(names[each.dataset_id]).status() for each in records if each.ended_at is None]
    ended = [(names[each.dataset_id], each) for each in records if each.ended_at is not None][:20]
    return page(request, "flips.html", going_on=going_on, ended=ended, names=sorted(names.values()))


@router.get("/flips/find", dependencies=[needs("flip.read", anywhere=True)])
def find(request: Request, rooms: Here, dataset: str) -> Response:
    """Go to the page of the dataset that was chosen from the list."""
    return elsewhere(request, f"/flips/{in_path(rooms.workspace.dataset(dataset).name)}")


@router.get("/flips/{name:path}", dependencies=[needs("flip.read", of="name")])
def flip(
    request: Request, rooms: Here, name: str, ask: Annotated[str | None, Query(description="what to ask about")] = None
) -> Response:
    """Show the flip of one dataset: its stages, both arms, and what can be done."""
    workspace, queue = rooms.workspace, rooms.queue
    record = workspace.tree.dataset(name)
    found = workspace.flip(name)
    now = found.status()
    going_on = now.to is not None and now.outcome is None
    states = now.stages if going_on else found.explain()
    job = _job(queue, record.name)
    asked = act_named(now, ask) if ask is not None else None
    return page(
        request,
        "flip.html",
        part="state",
        dataset=record.name,
        now=now,
        going_on=going_on,
        to=now.to if going_on else _other(now),
        lights=lights(now, states, job),
        acts=acts(now),
        asked=asked,
        actions=actions_of(found, asked) if asked is not None else [],
        job=job,
        last=_last(queue, record.name) if job is None else None,
        may_run=may("flip.run", record.slugs),
        tally=workspace.comparisons.tally(name),
        found=workspace.comparisons.found(name, most=COMPARISONS),
        rows=record.row_count,
    )


@router.post("/flips/{name:path}", dependencies=[needs("flip.run", of="name")])
def act(
    request: Request,
    rooms: Here,
    name: str,
    do: Annotated[str, Form()],
    confirm: Annotated[str | None, Form()] = None,
) -> Response:
    """Queue what was asked for, or stop what runs."""
    workspace, queue = rooms.workspace, rooms.queue
    dataset = workspace.tree.dataset(name).name
    here = f"/flips/{in_path(dataset)}"
    job = _job(queue, dataset)
    if do == "stop":
        if job is not None:
            queue.cancel(job.id)
        return elsewhere(request, here, Said("info", "It was asked to stop. What is done stands."))
    if job is not None:
        raise ConflictError(
            f"job {job.id} works on the flip of {dataset}",
            safe="nothing was changed",
            next_step="wait for it, or stop it",
        )
    found = act_named(workspace.flip(name).status(), do)
    if found is None:
        raise UsageError(
            f"{do!r} can't be done to the flip of {dataset} as it stands",
            safe="nothing was changed",
            next_step="look at the page again: it may have gone on",
        )
    if found.typed and confirm != dataset:
        raise UsageError(
            f"the name that was typed is not {dataset}", safe="nothing was changed", next_step="type it as it is shown"
        )
    confirmed = {"confirm": dataset} if do == "complete" else {}
    queue.add("flip", {"dataset": dataset, **found.job, **confirmed})
    return elsewhere(request, here)


def _job(queue: Jobs, dataset: str) -> Job | None:
    """Return what works on a dataset's flip, or waits to."""
    found = queue.list(statuses=(WAITING, RUNNING), kind="flip")
    return next((each for each in reversed(found) if each.options["dataset"] == dataset), None)


def _last(queue: Jobs, dataset: str) -> Job | None:
    """Return what worked on it last."""
    return next((each for each in queue.list(kind="flip") if each.options["dataset"] == dataset), None)


def _other(now: FlipStatus) -> str:
    return {"postgres": "iceberg", "iceberg": "postgres"}[now.primary]
