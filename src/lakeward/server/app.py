"""The application: its routes, what answers for their errors, and what is refused before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from starlette.types import ASGIApp

import lakeward
from lakeward.server.authentication import Authentication
from lakeward.server.found_routes import include_all
from lakeward.server.logins import Logins
from lakeward.server.perimeter import LOOPBACK, Perimeter
from lakeward.server.problems import MEDIA_TYPE as PROBLEM
from lakeward.server.problems import register
from lakeward.server.rooms import Rooms
from lakeward.server.routing import PREFIX
from lakeward.server.streams import MOST, STALL_SECONDS, OpenStreams
from lakeward.server.telling import Told
from lakeward.server.web.site import add_pages
from lakeward.wiring.workspace import Workspace


def create_app(
    workspace: Workspace,
    scratch: Path,
    *,
    page_rows: int,
    body_limit: int,
    streams: int = MOST,
    stall_seconds: float = STALL_SECONDS,
    hosts: Collection[str] = LOOPBACK,
    logins: Logins | None = None,
) -> FastAPI:
    """Return the application that serves a workspace.

    Args:
        workspace: stays open as long as it runs; whoever opened it closes it.
        scratch: a directory for bodies of requests.
        page_rows: how many rows a page has at most.
        body_limit: how many bytes a request may bring.
        streams: how many streams of rows may be open at a time.
        stall_seconds: how long a client may take for one part of such a stream.
        hosts: names by which the server may be called.
        logins: how people log in; None: nobody is asked for a name, and whoever can ask may do all.
    """
    app = _Application(
        lifespan=_ending_feed,
        title="Lakeward",
        version=lakeward.__version__,
        summary="Datasets that live as Postgres rows or Iceberg tables.",
        openapi_url=f"{PREFIX}/openapi.json",
        # Their pages load scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        # As programs that are made from the description call them.
        generate_unique_id_function=lambda route: route.name,
    )
    app.state.rooms = Rooms(workspace, scratch, page_rows, streams=OpenStreams(streams, stall_seconds))
    app.state.logins = logins
    register(app)
    include_all(app)
    app.add_middleware(Authentication, logins=logins)
    add_pages(app)
    app.add_middleware(Perimeter, hosts=hosts, body_limit=body_limit)
    return app


class _Application(FastAPI):
    """Tells of every request, those included that are refused, or fail, before a route is found."""

    def openapi(self) -> dict[str, Any]:
        """See FastAPI, which takes every model for one of plain JSON; problems have a type of their own."""
        described = super().openapi()
        operations = [each for path in described["paths"].values() for each in path.values()]
        for status, response in (each for operation in operations for each in operation["responses"].items()):
            if status[0] in "45" and "application/json" in response.get("content", {}):
                response["content"][PROBLEM] = response["content"].pop("application/json")
        return described

    def build_middleware_stack(self) -> ASGIApp:
        """See Starlette; what tells of requests stands around all of it."""
        rooms: Rooms = self.state.rooms
        return Told(super().build_middleware_stack(), rooms.measures.answered)


@asynccontextmanager
async def _ending_feed(app: FastAPI) -> AsyncIterator[None]:
    yield
    await app.state.rooms.end_streams()
