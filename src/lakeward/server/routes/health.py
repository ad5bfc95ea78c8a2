"""Whether the server is alive, and whether it can answer."""

from __future__ import annotations

from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter
from pydantic import BaseModel

from lakeward.server.problems import Problem
from lakeward.server.rooms import Here

PREFIX = ""

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """It is."""

    status: Literal["ok"] = "ok"


@router.get("/healthz", summary="Is the server alive?")
async def healthz() -> Health:
    """Answer as long as the process does, whatever else is broken."""
    # In the event loop: it needs no thread, all of which may be busy.
    return Health()


@router.get(
    "/readyz",
    summary="Can the server answer?",
    responses={HTTPStatus.SERVICE_UNAVAILABLE: {"model": Problem, "description": "Postgres does not answer."}},
)
def readyz(rooms: Here) -> Health:
    """Answer once Postgres does."""
    rooms.workspace.datasets()
    return Health()
