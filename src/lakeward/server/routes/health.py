"""Whether the server is alive, and whether it can answer."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Literal

from anyio import CapacityLimiter, create_task_group, move_on_after
from anyio.to_thread import run_sync
from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, Field

from lakeward.access.guard import carried
from lakeward.errors import LakewardError
from lakeward.server.logins import logins_of
from lakeward.server.problems import Problem, problem
from lakeward.server.rooms import Here
from lakeward.wiring.readiness import Check, readiness

PREFIX = ""

LIMIT_SECONDS = 5.0
"""So long may what has to be well take to say so."""

_askers = CapacityLimiter(6)
"""Threads of their own: those of requests may all be busy, and those that hang are not to take them."""

router = APIRouter(tags=["operations"])


class Health(BaseModel):
    """It is."""

    status: Literal["ok"] = "ok"


class Readiness(Health):
    """It is, and whether who asks has to say who they are."""

    login: Literal["required", "none"] = Field(description="none: whoever can reach the server may do all")


@router.get("/healthz", summary="Is the server alive?")
async def healthz() -> Health:
    """Answer as long as the process does, whatever else is broken."""
    # In the event loop: it needs no thread, all of which may be busy.
    return Health()


@router.get(
    "/readyz",
    summary="Can the server answer?",
    response_model=Readiness,
    responses={
        HTTPStatus.SERVICE_UNAVAILABLE: {
            "model": Problem,
            "description": "The database, the warehouse or the catalog does not answer, or has other tables.",
        }
    },
)
async def readyz(request: Request, rooms: Here) -> Readiness | Response:
    """Answer whether the database with its tables, the warehouse and the catalog are well, within five seconds."""
    found: dict[str, str] = {}
    steps: list[str] = []

    async def ask(name: str, check: Check) -> None:
        # What does not answer in time is named, and left to its thread.
        found[name] = f"it does not answer within {LIMIT_SECONDS:g} s"
        with move_on_after(LIMIT_SECONDS):
            try:
                await run_sync(carried(check), abandon_on_cancel=True, limiter=_askers)
            except LakewardError as error:
                found[name] = error.message
                steps.extend(filter(None, [error.next_step]))
            else:
                del found[name]

    async with create_task_group() as group:
        checks = await run_sync(partial(readiness, rooms.workspace), limiter=_askers)
        for name, check in checks.items():
            group.start_soon(ask, name, check)
    if not found:
        return Readiness(login="none" if logins_of(request) is None else "required")
    detail = "; ".join(f"{name}: {text}" for name, text in sorted(found.items()))
    more = {"fields": {"not_ready": found}, "next_steps": list(dict.fromkeys(steps)) or ["lakeward doctor"]}
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "NotReady", detail, **more)
