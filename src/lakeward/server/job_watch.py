"""Jobs that somebody follows: each is looked at once, for all who follow it.

A follower gets the job whenever something of it has changed, and the lines of its log; then `ended`, and no more.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from lakeward.access.guard import acting
from lakeward.access.principal import OWNER
from lakeward.errors import Busy, LakewardError
from lakeward.jobs.job import Job, LogLine
from lakeward.jobs.queue import Jobs
from lakeward.server.feed import BEAT_SECONDS, MOST_FOLLOWERS, Event, within
from lakeward.types.plain_json import json_value

LOOK_SECONDS = 0.4

LINES = 2000
"""So many of the newest lines of a log are told to who comes; the log itself has all."""

log = logging.getLogger("lakeward.server")


@dataclass
class _Watched:
    """A job that is followed. `complete`: it has ended, and its whole log was read."""

    job: Job
    followers: int = 0
    complete: bool = False
    last: int = 0
    lines: deque[LogLine] = field(default_factory=lambda: deque(maxlen=LINES))
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def wake(self) -> None:
        self.changed.set()
        self.changed = asyncio.Event()


class JobWatch:
    """Follows jobs for all who want to know. All of it is of one event loop.

    Args:
        jobs: the queue.
        look_seconds: between two looks at those that are followed.
    """

    def __init__(self, jobs: Jobs, look_seconds: float = LOOK_SECONDS) -> None:
        self._jobs = jobs
        self._look_seconds = look_seconds
        self._watched: dict[int, _Watched] = {}
        self._looking: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def followers(self) -> int:
        """How many follow now."""
        return sum(each.followers for each in self._watched.values())

    async def follow(self, job: Job, last: int = 0) -> AsyncGenerator[Event | None]:
        """Yield what becomes of a job, until it has ended; None, as a sign of life, where nothing does.

        Args:
            job: as it stands.
            last: the last line of its log that was seen.

        Raises:
            Busy: too many follow jobs.
        """
        if self.followers >= MOST_FOLLOWERS:
            raise Busy(f"{MOST_FOLLOWERS} follow jobs already", safe="nothing was changed", next_step="ask again later")
        watched = self._watched.setdefault(job.id, _Watched(job))
        watched.followers += 1
        try:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look())
            told: Job | None = None
            while not self._closed:
                changed = watched.changed
                for line in [each for each in watched.lines if each.id > last]:
                    yield Event(str(line.id), "log", (), _json(line))
                    last = line.id
                if changed is not watched.changed:
                    continue
                if watched.complete:
                    yield Event(None, "ended", (), _json(watched.job))
                    return
                if watched.job != told:
                    told = watched.job
                    yield Event(None, "job", (), _json(told))
                if changed is watched.changed and not await within(changed, BEAT_SECONDS):
                    yield None
        finally:
            watched.followers -= 1
            if not watched.followers:
                self._watched.pop(job.id, None)

    async def close(self) -> None:
        """End it, for all who follow."""
        self._closed = True
        for each in self._watched.values():
            each.wake()

    async def _look(self) -> None:
        while self._watched and not self._closed:
            for watched in [each for each in self._watched.values() if not each.complete]:
                try:
                    await run_in_threadpool(self._look_at, watched)
                except LakewardError as error:
                    log.warning("job %s can't be looked at now: %s", watched.job.id, error.message)
                else:
                    watched.wake()
            await asyncio.sleep(self._look_seconds)
        self._looking = None

    def _look_at(self, watched: _Watched) -> None:
        # Of all who follow, whoever may see least could have begun it.
        with acting(OWNER):
            job = self._jobs.get(watched.job.id)
            while lines := self._jobs.log(job.id, after=watched.last):
                watched.lines.extend(lines)
                watched.last = lines[-1].id
        watched.job, watched.complete = job, job.ended


def _json(told: Job | LogLine) -> str:
    return json.dumps(json_value(told.to_json()), ensure_ascii=False)
