"""Commands of the command line, run here for somebody elsewhere: `lakeward --server`."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing
from http import HTTPStatus
from pathlib import Path
from shutil import rmtree

from anyio import CancelScope
from anyio.to_thread import run_sync
from fastapi import Request
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.types import Receive, Scope, Send

from lakeward.access.guard import may_somewhere, principal
from lakeward.errors import UsageError
from lakeward.server.bodies import ContentType, checked_headers, received
from lakeward.server.frames import ENDED, ERR, MEDIA_TYPE, frame
from lakeward.server.orders import EXAMPLE, unpack
from lakeward.server.orders import MEDIA_TYPE as ARCHIVE
from lakeward.server.presence import Presence, presence_of
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("commands")


class Typed(BaseModel):
    """A line that was typed, for a command that waits for it."""

    model_config = ConfigDict(extra="forbid", json_schema_extra={"example": {"line": "main.sales.orders"}})

    line: str = Field(max_length=10_000, pattern=r"^[^\n\r]*$", description="without its end")


@router.post(
    "/commands",
    summary="Run a command of the command line",
    response_class=StreamingResponse,
    responses={
        HTTPStatus.OK: {
            "content": {MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}}},
            "description": "Frames: what the command writes, the files that it made, and at last its exit code.",
        }
    },
    openapi_extra={
        "requestBody": {
            "required": True,
            "description": f"An archive: `order.json` first, as here, then the files that it names, below `files/`. "
            f"The order: {json.dumps(EXAMPLE)}",
            "content": {ARCHIVE: {"schema": {"type": "string", "format": "binary"}}},
        }
    },
    dependencies=[needs("command.run", anywhere=True)],
)
async def run_command(rooms: Here, request: Request, content_type: ContentType = "") -> StreamingResponse:
    """Run a command in a process of its own, as whoever asks, on the files that come with it.

    It ends when the connection does: interrupted first, as by Ctrl-C. See docs/remote.md for the frames.
    """
    checked_headers(request)
    if content_type.partition(";")[0].strip().lower() != ARCHIVE:
        raise UsageError(f"a command is ordered by {ARCHIVE}", safe="nothing was done", content_type=content_type)
    who = principal()
    async with AsyncExitStack() as held:
        held.enter_context(rooms.commands.place(who.name))
        folder = Path(tempfile.mkdtemp(dir=rooms.scratch, prefix="command-"))
        held.push_async_callback(_removed, folder)
        async with received(request, rooms.scratch) as archive:
            await run_sync(unpack, archive, folder, who)
        frames = watched(rooms.commands.run(folder, who.name), presence_of(request))
        return _Answer(frames, held.pop_all())


async def watched(frames: AsyncGenerator[bytes], presence: Presence) -> AsyncGenerator[bytes]:
    """Yield a command's frames, and end it when who ordered it is nobody any more, as by a token that was revoked."""
    refused = 0
    async with aclosing(frames):
        async for part in frames:
            yield part
            ended = part.startswith(ENDED)
            if not ended and not await presence.still(lambda: may_somewhere("command.run")):
                refused += 1
            # At the second time: one that takes its own token away is about to end.
            if refused > 1:
                break
        else:
            return
    yield frame(ERR, b"Error: the command was ended: who ordered it may not do so any more\n")
    yield frame(ENDED, json.dumps({"code": 1}).encode())


class _Answer(StreamingResponse):
    """Sends a command's frames, and lets go of what it holds, whether any of them was asked for or not."""

    def __init__(self, frames: AsyncGenerator[bytes], held: AsyncExitStack) -> None:
        super().__init__(frames, media_type=MEDIA_TYPE, headers={"Cache-Control": "no-store"})
        self._held = held

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._held:
            await super().__call__(scope, receive, send)


async def _removed(folder: Path) -> None:
    with CancelScope(shield=True):
        await run_sync(rmtree, folder, True)


@router.post(
    "/commands/{id}/answer",
    status_code=HTTPStatus.NO_CONTENT,
    summary="Answer what a running command asks",
    dependencies=[needs("command.run", anywhere=True)],
)
async def answer_command(rooms: Here, id: str, typed: Typed) -> None:
    """Pass on a line to a command of one's own that waits for it: a name that is to be confirmed, say."""
    await rooms.commands.get(id, principal().name).answer(typed.line)
