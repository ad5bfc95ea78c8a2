"""Moves: bring Iceberg tables to the names of their datasets in the catalog, and back. No file is touched."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

from fastapi import Body, Query
from fastapi.responses import JSONResponse

from lakeward.errors import UsageError
from lakeward.migration.moves.sweep import OUTCOMES, Outcome
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.moves import MoveApply, Moved, MovePlan, MoveStatus, MoveUndo
from lakeward.server.queueing import ACCEPTED, queued, waited
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("moves")

READ, RUN = needs("move.read", anywhere=True), needs("move.run", anywhere=True)

Names = Annotated[
    list[str] | None, Query(alias="name", description="datasets, or schemas: catalog.schema; none: all datasets")
]


@router.get("/moves", summary="Show where tables are", dependencies=[READ])
def show_moves(rooms: Here, name: Names = None) -> MoveStatus:
    """Name, snapshot, since when and by which way; and how many tables are in each namespace."""
    return MoveStatus.of(rooms.workspace.moves.status(*(name or ())))


@router.get("/moves/plan", summary="Plan moves", dependencies=[READ])
def plan_moves(
    rooms: Here,
    name: Names = None,
    limit: Annotated[int | None, Query(ge=1, le=100_000, description="plan so many at most")] = None,
) -> MovePlan:
    """Which tables are not where the names of their datasets say, and what is in the way. Changes nothing."""
    return MovePlan.of(rooms.workspace.moves.plan(*(name or ()), limit=limit))


@router.post(
    "/moves/apply", summary="Move tables", dependencies=[RUN], response_model=Moved | DryRun, responses=ACCEPTED
)
def apply_moves(
    rooms: Here, wanted: Annotated[MoveApply, Body(default_factory=MoveApply)]
) -> Moved | DryRun | JSONResponse:
    """Move tables where they belong, one after the other. One that fails is told, and the next one is moved."""
    moves, names = rooms.workspace.moves, _names(wanted)
    if wanted.dry_run:
        found = moves.plan(*names, limit=wanted.limit)
        warnings = [f"{each.dataset}: {each.reason}" for each in found.refused]
        return DryRun(actions=[each.explain() for each in found.moves], warnings=warnings)
    if not wanted.wait:
        return queued(rooms, "move", {"names": names, "limit": wanted.limit})
    with waited(rooms):
        return _moved(moves.apply(*names, limit=wanted.limit))


@router.post(
    "/moves/undo", summary="Take moves back", dependencies=[RUN], response_model=Moved | DryRun, responses=ACCEPTED
)
def undo_moves(
    rooms: Here, wanted: Annotated[MoveUndo, Body(default_factory=MoveUndo)]
) -> Moved | DryRun | JSONResponse:
    """Take the newest move of each table back. Whatever was written since goes with the table."""
    moves, names = rooms.workspace.moves, _names(wanted)
    if wanted.dry_run:
        back, refused = moves.plan_undo(*names)
        warnings = [f"{each.dataset}: {each.reason}" for each in refused]
        return DryRun(actions=[each.explain() for each in back], warnings=warnings)
    if not wanted.wait:
        return queued(rooms, "move", {"names": names, "undo": True})
    with waited(rooms):
        return _moved(moves.undo(*names))


def _names(wanted: MoveUndo) -> list[str]:
    if bool(wanted.names) == wanted.all:
        raise UsageError(
            "either names are given, or `all` is true",
            safe="nothing was changed",
            next_step="see what is meant: dry_run",
        )
    return wanted.names


def _moved(outcomes: Iterable[Outcome]) -> Moved:
    found = list(outcomes)
    counts = {kind: sum(each.outcome == kind for each in found) for kind in OUTCOMES}
    return Moved.plain(**counts, datasets=[each.to_json() for each in found])
