"""Whoever follows something, for longer than a request takes: what is taken from them counts within seconds.

A token that is revoked, a logout, a role that is taken away: a stream that goes on asks anew, every few seconds.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from lakeward.access.guard import acting
from lakeward.access.principal import OWNER, Principal
from lakeward.errors import LakewardError
from lakeward.server.feed import Event

ASKED_SECONDS = 2.0
"""So long what was said of somebody is taken for true."""

IN_SCOPE = "lakeward.presence"
"""Under which key of a request's scope it is."""


class Presence:
    """Somebody who follows, with what they may do now.

    Args:
        who: they were when the request came.
        again: asks who they are now; None: nobody any more.
    """

    def __init__(self, who: Principal, again: Callable[[], Principal | None]) -> None:
        self.who = who
        self._again = again
        self._asked: float | None = None

    async def follow(
        self, events: AsyncGenerator[Event | None], may: Callable[[], bool]
    ) -> AsyncGenerator[Event | None]:
        """Yield events as long as they are still somebody, and may still follow them.

        Args:
            events: with signs of life among them.
            may: asks that, of who acts; it may wait for the database.
        """
        async with aclosing(events):
            async for event in events:
                if not await self.still(may):
                    return
                yield event

    async def still(self, may: Callable[[], bool]) -> bool:
        """Say whether they are still somebody, and may still do what they do; asked at most every few seconds."""
        now = asyncio.get_running_loop().time()
        if self._asked is not None and now - self._asked < ASKED_SECONDS:
            return True
        self._asked = now
        return await run_in_threadpool(self._ask, may)

    def _ask(self, may: Callable[[], bool]) -> bool:
        try:
            who = self._again()
            if who is None:
                return False
            self.who = who
            with acting(who):
                return may()
        except LakewardError:
            # It is not there any more; or nobody can be asked now: then they come again later.
            return False


def presence_of(request: Request) -> Presence:
    """Return who asks."""
    found: Presence = request.scope[IN_SCOPE]
    return found


ALONE = Presence(OWNER, lambda: OWNER)
"""Where nobody is asked for a name."""
