"""Long work that a request asks for: as a job, which the answer names, or within the request, if it wants to wait."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from http import HTTPStatus
from typing import Any

from fastapi.responses import JSONResponse

from lakeward.errors import Busy
from lakeward.server.documents.jobs import Queued
from lakeward.server.rooms import WAITING, Rooms
from lakeward.server.routing import PREFIX

ACCEPTED: dict[int | str, dict[str, Any]] = {
    HTTPStatus.ACCEPTED: {"model": Queued, "description": "It is queued: a worker does it."}
}
"""What OpenAPI tells of it."""


def queued(
    rooms: Rooms, kind: str, options: Mapping[str, Any], *, run_at: datetime | None = None, key: str | None = None
) -> JSONResponse:
    """Queue a job, and return the answer that names it.

    Args:
        rooms: of the server.
        kind: of job.
        options, run_at, key: see `Jobs.add`; options that are None are as the kind has them.

    Raises:
        Forbidden: who asks may not do it.
        UnknownObject, UsageError: see `Jobs.add`.
    """
    given = {name: value for name, value in options.items() if value is not None}
    job = rooms.queue.add(kind, given, run_at=run_at, key=key)
    url = f"{PREFIX}/jobs/{job.id}"
    document = Queued(job=job.id, status=job.status, url=url).model_dump(mode="json")
    return JSONResponse(document, HTTPStatus.ACCEPTED, headers={"Location": url})


@contextmanager
def waited(rooms: Rooms) -> Iterator[None]:
    """Hold one of the places for requests that wait for long work: each holds a thread, and others need some, too.

    Raises:
        Busy: so many wait as may.
    """
    if not rooms.waiting.acquire(blocking=False):
        raise Busy(
            f"{WAITING} requests wait for long work, as many as may at a time",
            safe="nothing was changed",
            next_step="ask without `wait`: it is queued then",
        )
    try:
        yield
    finally:
        rooms.waiting.release()
