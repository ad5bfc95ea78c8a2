"""The one place of a server that looks at what goes on, and all who follow it.

However many follow, Postgres is asked once per look, and nobody has a queue of their own: each goes through what is
kept for all at their own pace. Who is too slow, or comes back too late, is told to begin anew (`reset`), and so is
whoever comes from another server.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from dataclasses import dataclass
from itertools import islice

from starlette.concurrency import run_in_threadpool

from lakeward.access.principal import Place, Principal
from lakeward.control.db import Database
from lakeward.control.goings_on import GoingsOn, Happening
from lakeward.errors import Busy, LakewardError
from lakeward.types.plain_json import json_value

LOOK_SECONDS = 0.5
"""Between two looks, while somebody follows."""

LINGER_SECONDS = 30.0
"""So long is looked on when nobody follows any more: a page that is loaded anew misses nothing."""

BEAT_SECONDS = 5.0
"""After so long a silence a follower is told that all is well, since proxies end what is silent; and whether they may
still follow is asked again."""

KEPT = 1000
"""So many of the newest events are kept for those who come back."""

MOST_FOLLOWERS = 500

log = logging.getLogger("lakeward.server")


@dataclass(frozen=True)
class Event:
    """Something to tell. `id` None: it is not kept, and nobody can come back to it."""

    id: str | None
    kind: str
    place: Place
    data: str
    principal: str | None = None

    def seen_by(self, who: Principal) -> bool:
        """Say whether somebody may know of it: what is of the whole workspace, who has a role there, or did it."""
        if self.place:
            return who.sees(self.place)
        return who.role_in(()) is not None or (self.principal is not None and self.principal == who.name)

    def __str__(self) -> str:
        number = f"id: {self.id}\n" if self.id is not None else ""
        return f"{number}event: {self.kind}\ndata: {self.data}\n\n"


RESET = Event(None, "reset", (), "{}")
"""What was missed is not kept: whoever follows has to look at everything again."""

READY = Event(None, "ready", (), "{}")
"""From now on nothing is missed."""


class Feed:
    """What goes on in a workspace, for those who follow it. All of it is of one event loop.

    Args:
        database: the workspace's.
        look_seconds: between two looks.
    """

    def __init__(self, database: Database, look_seconds: float = LOOK_SECONDS) -> None:
        self._database = database
        self._look_seconds = look_seconds
        self._events: deque[tuple[int, Event]] = deque(maxlen=KEPT)
        self._run, self._newest = secrets.token_hex(4), 0
        self._changed, self._ready = asyncio.Event(), asyncio.Event()
        self._closed = False
        self._looking: asyncio.Task[None] | None = None
        self.followers = 0
        """How many follow now."""

    async def follow(self, last: str | None = None) -> AsyncGenerator[Event | None]:
        """Yield what happens, without end; None, as a sign of life, where nothing does.

        Args:
            last: the `id` of the last event that was seen, to go on behind it; None: from now on.

        Raises:
            Busy: too many follow.
        """
        if self.followers >= MOST_FOLLOWERS:
            raise Busy(f"{MOST_FOLLOWERS} follow already", safe="nothing was changed", next_step="ask again later")
        self.followers += 1
        try:
            if self._looking is None:
                self._looking = asyncio.create_task(self._look())
            while not await within(self._ready, BEAT_SECONDS):
                yield None
            known = self._position(last)
            # Before it is told: what comes while somebody is told so comes behind it.
            at = self._newest if known is None else known
            yield READY if known is not None else RESET
            while not self._closed:
                changed = self._changed
                oldest = self._events[0][0] if self._events else self._newest + 1
                if at < oldest - 1:
                    at = self._newest
                    yield RESET
                # A copy: more comes while they are sent. Their numbers have no gaps.
                for number, event in list(islice(self._events, at - oldest + 1, None)):
                    yield event
                    at = number
                if changed is self._changed and not await within(changed, BEAT_SECONDS):
                    yield None
        finally:
            self.followers -= 1

    def tell(self, found: Iterable[Happening]) -> None:
        """Keep what has happened, and wake who follows."""
        for each in found:
            self._newest += 1
            data = json.dumps(json_value(dict(each.facts)), ensure_ascii=False)
            event = Event(f"{self._run}-{self._newest}", each.kind, each.place, data, each.principal)
            self._events.append((self._newest, event))
        self._wake()

    async def close(self) -> None:
        """End it, for all who follow."""
        self._closed = True
        self._ready.set()
        self._wake()
        if self._looking is not None:
            self._looking.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._looking

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    def _position(self, last: str | None) -> int | None:
        """Return behind which event somebody goes on; None: it is not known here."""
        if last is None:
            return self._newest
        run, _, number = last.partition("-")
        if run != self._run or not number.isdecimal() or int(number) > self._newest:
            return None
        return int(number)

    async def _look(self) -> None:
        goings_on: GoingsOn | None = None
        idle = 0.0
        while idle < LINGER_SECONDS:
            idle = 0.0 if self.followers else idle + self._look_seconds
            try:
                if goings_on is None:
                    goings_on = await run_in_threadpool(GoingsOn, self._database)
                    self._ready.set()
                found = await run_in_threadpool(goings_on.look)
            except LakewardError as error:
                log.warning("what goes on can't be looked at now: %s", error.message)
            else:
                if found:
                    self.tell(found)
            await asyncio.sleep(self._look_seconds)
        # Nobody looks at what happens from now on, so nobody can go on behind what is kept.
        self._looking = None
        self._ready.clear()
        self._events.clear()
        self._run, self._newest = secrets.token_hex(4), 0


async def within(changed: asyncio.Event, seconds: float) -> bool:
    """Wait for something to change, and return whether it did in that time."""
    try:
        await asyncio.wait_for(changed.wait(), seconds)
    except TimeoutError:
        return False
    return True
