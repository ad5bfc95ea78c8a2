"""The first page: what is wrong, where everything is, and what happened last, at one glance."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from lakeward.control.glance import TROUBLE, Glances
from lakeward.control.history import History
from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page
from lakeward.server.web.paging import Number, paged
from lakeward.server.web.standing import COLOURS, MEANINGS, chosen, counted, states, worst_first

PLACE = Place("Overview", "/", 10, "dataset.read")
ROWS = 50
ACTIVITY = 14

router = APIRouter()


@router.get("/", dependencies=[needs("dataset.read", anywhere=True)])
def overview(request: Request, rooms: Here, q: str = "", state: str = "", number: Number = None) -> Response:
    """Show where all datasets stand, those first that somebody has to look at."""
    workspace = rooms.workspace
    glances = Glances(workspace.database, workspace.tree.workspace).all()
    wanted = state if state in COLOURS else None
    names = {each.id: each.name for each in glances}
    return page(
        request,
        "overview.html",
        part="standing",
        counts=counted(glances),
        trouble=TROUBLE,
        colours=COLOURS,
        meanings=MEANINGS,
        states=states,
        found=paged(worst_first(chosen(glances, q, wanted)), number, ROWS),
        q=q,
        state=wanted,
        base="/",
        activity=History(workspace.database).transactions(names, idle=False, most=ACTIVITY),
    )
