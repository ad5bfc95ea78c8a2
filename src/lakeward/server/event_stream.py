"""Server-sent events: an answer that goes on as long as its client listens, up to a quarter of an hour.

Then it ends, and clients come back by themselves with the last event that they have seen. It ends within seconds where
who follows may do so no more: see `presence`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any

from fastapi.responses import StreamingResponse

from lakeward.server.feed import Event

MEDIA_TYPE = "text/event-stream"

LONGEST_SECONDS = 900.0

AGAIN_MILLISECONDS = 2000
"""After how long a client comes back."""

DESCRIBED: dict[str, Any] = {
    "content": {
        MEDIA_TYPE: {
            "schema": {"type": "string"},
            "example": 'id: 5f1c-7\nevent: version\ndata: {"dataset": "main.sales.orders", "version": 4}\n\n',
        }
    },
    "description": "Events, as they happen.",
}
"""What OpenAPI tells of it."""


def event_stream(events: AsyncGenerator[Event | None]) -> StreamingResponse:
    """Return the answer that sends events; None among them is a sign of life."""
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_sent(events), media_type=MEDIA_TYPE, headers=headers)


async def _sent(events: AsyncGenerator[Event | None]) -> AsyncIterator[str]:
    # Not by a timeout around all of it: that would end whoever sends, in the middle of an event.
    clock = asyncio.get_running_loop().time
    end = clock() + LONGEST_SECONDS
    async with aclosing(events):
        yield f"retry: {AGAIN_MILLISECONDS}\n\n"
        async for event in events:
            yield ":\n\n" if event is None else str(event)
            if clock() > end:
                return
