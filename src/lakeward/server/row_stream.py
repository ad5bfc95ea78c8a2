"""An answer that is sent lot by lot while the next one is made, and whose reader is closed whatever happens."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Generator, Mapping
from itertools import chain

from anyio import CancelScope, move_on_after
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from lakeward.server.connection import EXTENSION, Connection
from lakeward.server.lots import Gathered, Lot, bodies
from lakeward.server.streams import STALL_SECONDS, OpenStreams

log = logging.getLogger(__name__)


class RowStream(StreamingResponse):
    """Sends what a generator makes. A client that is slow holds up one lot or two, and no thread.

    One that takes nothing is broken off after a while: the reader holds rows, a connection and its transaction.

    The first lot is made at once, so that what can't be read is refused with a status instead of a stream that breaks.

    Args:
        lots: what is sent; closed at the end, also where the client goes away before it.
        media_type: of all of them.
        headers: of the answer.

    Raises:
        LakewardError: the first lot can't be made.
    """

    def __init__(self, lots: Generator[Lot], media_type: str, headers: Mapping[str, str]) -> None:
        self._lots = lots
        self._rest = chain([next(lots, Lot([], last=True))], lots)
        self._following: asyncio.Task[Lot | None] | None = None
        self._connection: Connection | None = None
        self._stall_seconds = STALL_SECONDS
        super().__init__((), media_type=media_type, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, as one of the streams of its application."""
        streams: OpenStreams = scope["app"].state.rooms.streams if "app" in scope else OpenStreams()
        self._stall_seconds = streams.stall_seconds
        self._connection = scope.get("extensions", {}).get(EXTENSION)
        streams.begin()
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Not by the collector of garbage: the reader holds a connection, in a transaction, and files.
            with CancelScope(shield=True):
                if self._following is not None:
                    await asyncio.wait([self._following])
                await run_in_threadpool(self._lots.close)
                streams.end()
                streams.memory.freed()

    async def stream_response(self, send: Send) -> None:
        """See Starlette. Without its last chunk the answer is no whole one, as its client sees if it ever reads on."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        async for body, more in self._bodies():
            with move_on_after(self._stall_seconds) as waiting:
                await send({"type": "http.response.body", "body": self._sendable(body, more), "more_body": more})
            if waiting.cancelled_caught:
                log.warning("a client took no rows for %g s; its stream was broken off", self._stall_seconds)
                if self._connection is not None:
                    self._connection.cut()
                return

    def _sendable(self, body: Gathered, more: bool) -> Gathered | bytes:
        return body if more and self._connection is not None else b"".join(body.parts)

    async def _bodies(self) -> AsyncIterator[tuple[Gathered, bool]]:
        """Yield what is sent at once, and whether there is more of it. The end comes with the last bytes, if it can.

        Whoever has read the end of an Arrow stream reads no further, and would be taken for one who left before it.
        """
        self._following = self._next()
        # Whoever stops waiting does not stop the thread that makes the lot, and so not what waits for its end.
        while (lot := await asyncio.shield(self._following)) is not None:
            if lot.last:
                yield Gathered(lot.parts), False
                return
            for number, body in enumerate(bodies(lot.parts)):
                yield body, True
                if not number:
                    # Not before: for a client that takes nothing of this one, the next one need not be held.
                    self._following = self._next()
        yield Gathered(()), False

    def _next(self) -> asyncio.Task[Lot | None]:
        task = asyncio.create_task(run_in_threadpool(next, self._rest, None))
        # Whoever does not wait for it any more does not ask what became of it.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task
