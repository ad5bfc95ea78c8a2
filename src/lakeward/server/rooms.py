"""What every route gets: the open workspace, and what the server was told."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from threading import Semaphore
from typing import Annotated

from anyio import CapacityLimiter
from fastapi import Depends, Request

from lakeward.errors import UsageError
from lakeward.jobs.queue import Jobs
from lakeward.server.feed import Feed
from lakeward.server.job_watch import JobWatch
from lakeward.server.measures import Measures
from lakeward.server.nursery import Nursery
from lakeward.server.running import Commands
from lakeward.server.streams import OpenStreams
from lakeward.wiring.workspace import Workspace

REPEATED = ("column", "namespace", "key", "partition", "name")
"""Parameters that may come more than once: each is one of several."""

WRITERS = 32
"""So many requests write at a time; each holds a thread."""

WAITING = 8
"""So many requests wait for long work at a time; each holds a thread of those that answer all others, too."""


@dataclass(frozen=True)
class Rooms:
    """The parts of a running server.

    Args:
        workspace: what it serves.
        scratch: a directory of its own, for bodies of requests while they arrive.
        page_rows: how many rows a page has at most.
        writers: how many requests write at a time.
        streams: of rows, that are open.
        waiting: gives places to requests that wait for long work.
    """

    workspace: Workspace
    scratch: Path
    page_rows: int
    writers: CapacityLimiter = field(default_factory=lambda: CapacityLimiter(WRITERS))
    streams: OpenStreams = field(default_factory=OpenStreams)
    waiting: Semaphore = field(default_factory=lambda: Semaphore(WAITING))

    @cached_property
    def feed(self) -> Feed:
        """What tells those who follow of what goes on."""
        return Feed(self.workspace.database)

    @cached_property
    def job_watch(self) -> JobWatch:
        """What tells those who follow a job of it."""
        return JobWatch(self.queue)

    @cached_property
    def commands(self) -> Commands:
        """The commands of people elsewhere that run here."""
        return Commands(Nursery(self.workspace.settings), self.workspace.settings.values.server.commands)

    @cached_property
    def measures(self) -> Measures:
        """Its numbers, which it counts from when they are first asked for."""
        return Measures(self.workspace, lambda: self.streams.open)

    @cached_property
    def queue(self) -> Jobs:
        """The queue that long work goes to."""
        return Jobs(self.workspace)

    async def end_streams(self) -> None:
        """Let those end who follow what goes on, since they would go on following."""
        await self.feed.close()
        if "job_watch" in vars(self):
            await self.job_watch.close()


def known_parameters(request: Request) -> None:
    """Refuse parameters that a route has not: rows would be read that nobody asked for, or written otherwise.

    Raises:
        UsageError: there is one, or one that may come once is there twice.
    """
    known = {each.alias: each for each in request.scope["route"].dependant.query_params}
    for name in request.query_params:
        if name not in known:
            there = f"there are {', '.join(known)}" if known else "there is none"
            raise UsageError(f"unknown parameter {name!r}; {there}", safe="nothing was changed", parameter=name)
        if name not in REPEATED and len(request.query_params.getlist(name)) > 1:
            raise UsageError(f"the parameter {name} comes more than once", safe="nothing was changed", parameter=name)


def rooms_of(request: Request) -> Rooms:
    """Return what the application was made with."""
    rooms: Rooms = request.app.state.rooms
    return rooms


Here = Annotated[Rooms, Depends(rooms_of)]
