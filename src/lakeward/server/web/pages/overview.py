"""The first page."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page

PLACE = Place("Overview", "/", 10, "dataset.read")

router = APIRouter()


@router.get("/", dependencies=[needs("dataset.read", anywhere=True)])
def overview(request: Request, rooms: Here) -> Response:
    """Show where datasets stand."""
    return page(request, "overview.html", datasets=rooms.workspace.datasets())
