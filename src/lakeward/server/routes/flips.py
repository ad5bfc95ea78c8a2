"""Flips: bring a live dataset to the other arm, stage by stage, and back."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Body
from fastapi.responses import JSONResponse

from lakeward.migration.flip import Flip as Flipping
from lakeward.migration.flip_status import StageState, Step
from lakeward.migration.options import Options
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.flips import (
    Flip,
    FlipBack,
    FlipCanary,
    FlipCheck,
    FlipComplete,
    FlipEnd,
    FlipPage,
    FlipResync,
    FlipStart,
    FlipSteps,
    FlipSwitch,
    FlipTo,
    FlipUndone,
    FlipVerify,
    Resynced,
)
from lakeward.server.documents.jobs import Queued
from lakeward.server.name_pages import After, Limit, names_after
from lakeward.server.queueing import ACCEPTED, queued, waited
from lakeward.server.rooms import Here, Rooms
from lakeward.server.routing import Name, noun
from lakeward.server.rules import needs

router = noun("flips")

NAME = "/flips/{name:path}"
READ, RUN = needs("flip.read", of="name"), needs("flip.run", of="name")


@router.get("/flips", summary="List flips", dependencies=[needs("flip.read", anywhere=True)])
def list_flips(rooms: Here, limit: Limit = 100, page: After = None) -> FlipPage:
    """Where every dataset's flip stands, by name: mode, mirror, stage and newest comparison."""
    names, following = names_after([each.name for each in rooms.workspace.datasets()], page, limit)
    return FlipPage(flips=[Flip.of(rooms.workspace.flip(name).status()) for name in names], next=following)


@router.get(NAME, summary="Show a flip", dependencies=[READ])
def show_flip(rooms: Here, name: Name) -> Flip:
    """Its route, the stages that are done, how far the other arm is behind, and what happened."""
    return Flip.of(rooms.workspace.flip(name).status())


@router.post(f"{NAME}/check", summary="Check a flip", dependencies=[READ])
def check_flip(rooms: Here, name: Name, wanted: Annotated[FlipTo, Body(default_factory=FlipTo)]) -> FlipCheck:
    """Say what a flip would do to the real values. Reads all rows of the newest version; changes nothing."""
    with waited(rooms):
        return FlipCheck.of(rooms.workspace.comparisons.check(name, wanted.to))


@router.post(
    f"{NAME}/start",
    summary="Start a flip, or go on with it",
    dependencies=[RUN],
    response_model=FlipSteps | DryRun,
    responses=ACCEPTED,
)
def start_flip(
    rooms: Here, name: Name, wanted: Annotated[FlipStart, Body(default_factory=FlipStart)]
) -> FlipSteps | DryRun | JSONResponse:
    """Run every stage that is not done, up to the switch. Readers and writers go on, and nothing is removed."""
    flip = rooms.workspace.flip(name)
    given = {"rows_per_second": wanted.rows_per_second, "max_lag": wanted.max_lag}
    options = Options(wanted.rows_per_second, wanted.max_lag)
    if wanted.dry_run:
        states = [state for state in flip.explain(wanted.to, options) if state.automatic]
        return DryRun(actions=[f"{state.name}: {action}" for state in states for action in state.actions])
    if not wanted.wait:
        return _queued(rooms, name, "run", to=wanted.to, until=wanted.until, **given)
    with waited(rooms):
        return _steps(flip, flip.run(wanted.to, until=wanted.until, options=options))


@router.post(
    f"{NAME}/verify", summary="Verify a flip", dependencies=[RUN], response_model=FlipSteps, responses=ACCEPTED
)
def verify_flip(
    rooms: Here, name: Name, wanted: Annotated[FlipVerify, Body(default_factory=FlipVerify)]
) -> FlipSteps | JSONResponse:
    """Compare all rows of both arms anew."""
    if not wanted.wait:
        return _queued(rooms, name, "stage", stage="verify")
    flip = rooms.workspace.flip(name)
    with waited(rooms):
        return _steps(flip, [flip.stage("verify")])


@router.post(
    f"{NAME}/canary",
    summary="Watch both arms",
    dependencies=[RUN],
    status_code=HTTPStatus.ACCEPTED,
    response_model=Queued,
)
def canary_flip(rooms: Here, name: Name, wanted: FlipCanary) -> JSONResponse:
    """Read both arms for a while, and switch if they keep to the limits; if not, the old one serves. It is a job.

    Cut short, it changes nothing, and goes on when it is asked for again.
    """
    return _queued(rooms, name, "canary", **wanted.model_dump())


@router.post(f"{NAME}/switch", summary="Switch a dataset", dependencies=[RUN])
def switch_flip(
    rooms: Here, name: Name, wanted: Annotated[FlipSwitch, Body(default_factory=FlipSwitch)]
) -> FlipSteps | DryRun:
    """Let the other arm serve: one change of the route, between two writes."""
    flip = rooms.workspace.flip(name)
    options = Options(max_lag=wanted.max_lag)
    if wanted.dry_run:
        return DryRun(actions=list(_state(flip, "switch", options).actions))
    return _steps(flip, [flip.stage("switch", options)])


@router.post(f"{NAME}/revert", summary="Revert a switch", dependencies=[RUN])
def revert_flip(
    rooms: Here, name: Name, wanted: Annotated[FlipBack, Body(default_factory=FlipBack)]
) -> FlipUndone | DryRun:
    """Let the arm serve again that served before. Nothing is lost: it got every write."""
    flip = rooms.workspace.flip(name)
    if wanted.dry_run:
        return DryRun(actions=flip.explain_undo(cancel=False))
    return _undone(flip, flip.revert())


@router.post(f"{NAME}/cancel", summary="Cancel a flip", dependencies=[RUN])
def cancel_flip(
    rooms: Here, name: Name, wanted: Annotated[FlipEnd, Body(default_factory=FlipEnd)]
) -> FlipUndone | DryRun:
    """Undo every stage and end the flip: the other arm's copy is removed. `confirm` names the dataset."""
    flip = rooms.workspace.flip(name)
    if wanted.dry_run:
        return DryRun(actions=flip.explain_undo(cancel=True))
    wanted.check(rooms.workspace.dataset(name).name)
    return _undone(flip, flip.cancel())


@router.post(
    f"{NAME}/complete",
    summary="Complete a flip",
    dependencies=[RUN],
    response_model=FlipSteps | DryRun,
    responses=ACCEPTED,
)
def complete_flip(
    rooms: Here, name: Name, wanted: Annotated[FlipComplete, Body(default_factory=FlipComplete)]
) -> FlipSteps | DryRun | JSONResponse:
    """End the mirroring, and remove the old rows, after all are compared once more. `confirm` names the dataset."""
    flip = rooms.workspace.flip(name)
    if wanted.dry_run:
        return DryRun(actions=list(_state(flip, "complete", Options()).actions))
    wanted.check(rooms.workspace.dataset(name).name)
    if not wanted.wait:
        return _queued(rooms, name, "complete", confirm=wanted.confirm)
    with waited(rooms):
        return _steps(flip, [flip.complete(Options(confirmed=wanted.confirm))])


@router.post(f"{NAME}/resync", summary="Make a copy anew", dependencies=[RUN])
def resync_flip(
    rooms: Here, name: Name, wanted: Annotated[FlipResync, Body(default_factory=FlipResync)]
) -> Resynced | DryRun:
    """Remove the copy that does not serve, and make it anew: what to do when the arms differ."""
    comparisons, dataset = rooms.workspace.comparisons, rooms.workspace.dataset(name).name
    if wanted.dry_run:
        return DryRun(actions=comparisons.explain_resync(dataset))
    wanted.check(dataset)
    with waited(rooms):
        done = comparisons.resync(dataset, options=Options(rows_per_second=wanted.rows_per_second))
    return Resynced.plain(dataset=dataset, **done)


def _queued(rooms: Rooms, name: str, do: str, **options: object) -> JSONResponse:
    return queued(rooms, "flip", {"dataset": rooms.workspace.dataset(name).name, "do": do, **options})


def _state(flip: Flipping, stage: str, options: Options) -> StageState:
    return next(each for each in flip.explain(options=options) if each.name == stage)


def _steps(flip: Flipping, steps: list[Step]) -> FlipSteps:
    return FlipSteps.of(flip.status(), steps=[step.to_json() for step in steps])


def _undone(flip: Flipping, undone: list[str]) -> FlipUndone:
    return FlipUndone.of(flip.status(), undone=undone)
