"""What every route gets: the open workspace, and what the server was told."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from fastapi import Depends, Request

from lakeward.wiring.workspace import Workspace


@dataclass(frozen=True)
class Rooms:
    """The parts of a running server.

    Args:
        workspace: what it serves.
        scratch: a directory of its own, for bodies of requests while they arrive.
        page_rows: how many rows a page has at most.
    """

    workspace: Workspace
    scratch: Path
    page_rows: int


def rooms_of(request: Request) -> Rooms:
    """Return what the application was made with."""
    rooms: Rooms = request.app.state.rooms
    return rooms


Here = Annotated[Rooms, Depends(rooms_of)]
