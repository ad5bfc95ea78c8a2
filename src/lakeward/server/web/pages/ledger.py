"""The ledger: the transactions of every dataset, and what dead processes have left to be finished."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from lakeward.access.guard import may
from lakeward.errors import UsageError
from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.messages import Said, elsewhere
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page
from lakeward.server.web.words import plural

PLACE = Place("Ledger", "/ledger", 50, "ledger.read")

MOST = 50
MOST_OF_ALL = 1000
STATUSES = ("open", "committed", "aborted")

router = APIRouter()


@router.get("/ledger", dependencies=[needs("ledger.read", anywhere=True)])
def ledger(
    request: Request,
    rooms: Here,
    status: Annotated[str | None, Query()] = None,
    most: Annotated[int, Query(ge=1, le=MOST_OF_ALL)] = MOST,
) -> Response:
    """Show transactions of all datasets, newest first."""
    if status and status not in STATUSES:
        raise UsageError(f"there is no status {status!r}; there are {', '.join(STATUSES)}", safe="nothing was changed")
    workspace = rooms.workspace
    found = workspace.transactions(status=status or None, most=most + 1)
    return page(
        request,
        "ledger.html",
        part="list",
        transactions=found[:most],
        more=min(most * 2, MOST_OF_ALL) if len(found) > most and most < MOST_OF_ALL else None,
        chosen=status,
        statuses=STATUSES,
        left=workspace.recoverable(),
        may_recover=may("ledger.recover"),
    )


@router.post("/ledger", dependencies=[needs("ledger.recover")])
def recover(request: Request, rooms: Here) -> Response:
    """Finish or remove what processes that died have left."""
    done = rooms.workspace.recover()
    text = f"Recovered {plural(len(done), 'transaction')}." if done else "There was nothing to recover."
    return elsewhere(request, "/ledger", Said("done", text))
