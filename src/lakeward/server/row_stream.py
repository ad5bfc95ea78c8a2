"""An answer that is sent part by part while the next one is made, and whose reader is closed whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Mapping
from itertools import chain

from anyio import CancelScope
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool
from starlette.types import Receive, Scope, Send

from lakeward.server.representations import Part
from lakeward.server.streams import OpenStreams


class RowStream(StreamingResponse):
    """Sends what a generator makes. A client that is slow holds up one part, and no thread.

    The first part is made at once, so that what can't be read is refused with a status instead of a stream that breaks.

    Args:
        parts: what is sent; closed at the end, also where the client goes away before it.
        media_type: of all of them.
        headers: of the answer.

    Raises:
        LakewardError: the first part can't be made.
    """

    def __init__(self, parts: Generator[Part], media_type: str, headers: Mapping[str, str]) -> None:
        self._parts = parts
        self._rest = chain([next(parts, b"")], parts)
        self._following: asyncio.Task[Part | None] | None = None
        super().__init__(self._ahead(), media_type=media_type, headers=headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it, as one of the streams of its application."""
        streams = scope["app"].state.rooms.streams if "app" in scope else OpenStreams()
        streams.begin()
        try:
            await super().__call__(scope, receive, send)
        finally:
            # Not by the collector of garbage: the reader holds a connection, in a transaction, and files.
            with CancelScope(shield=True):
                if self._following is not None:
                    await asyncio.wait([self._following])
                await run_in_threadpool(self._parts.close)
                streams.end()

    async def _ahead(self) -> AsyncIterator[Part]:
        self._following = self._next()
        # Whoever stops waiting does not stop the thread that makes the part, and so not what waits for its end.
        while (part := await asyncio.shield(self._following)) is not None:
            self._following = self._next()
            yield part

    def _next(self) -> asyncio.Task[Part | None]:
        task = asyncio.create_task(run_in_threadpool(next, self._rest, None))
        # Whoever does not wait for it any more does not ask what became of it.
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        return task
