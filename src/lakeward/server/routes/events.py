"""Events: what goes on in the workspace, as it happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from functools import partial
from typing import Annotated

from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from lakeward.access.guard import may_somewhere, sees
from lakeward.access.principal import Place
from lakeward.server.event_stream import DESCRIBED, event_stream
from lakeward.server.feed import Event
from lakeward.server.presence import Presence, presence_of
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("events")


@router.get(
    "/events",
    summary="Follow what goes on",
    dependencies=[needs("dataset.read", anywhere=True)],
    response_class=StreamingResponse,
    responses={200: DESCRIBED},
)
async def follow_events(
    rooms: Here,
    request: Request,
    dataset: Annotated[str | None, Query(description="only what is about this one")] = None,
    last_event_id: Annotated[
        str | None, Header(max_length=100, description="the last event that was seen, to go on behind it")
    ] = None,
) -> Response:
    """Follow what goes on, as server-sent events, each with a JSON object as its data.

    `ready`: from now on nothing is missed. `opened`, `version` and `aborted` tell what becomes of a transaction, `flip`
    of a stage of a flip, `job` of a job. `reset`: what was missed is not kept, and all has to be looked at again. The
    stream ends after a quarter of an hour; come back with the header `Last-Event-ID`, as browsers do.
    """
    place: Place = ()
    if dataset is not None:
        place = (await run_in_threadpool(rooms.workspace.tree.dataset, dataset)).slugs
    presence = presence_of(request)
    events = presence.follow(rooms.feed.follow(last_event_id), partial(_may, place))
    return event_stream(_seen(events, presence, place))


def _may(place: Place) -> bool:
    return may_somewhere("dataset.read") and sees(place)


async def _seen(
    events: AsyncGenerator[Event | None], presence: Presence, within: Place
) -> AsyncGenerator[Event | None]:
    """Yield the events that somebody may see."""

    def seen(event: Event) -> bool:
        return event.place[: len(within)] == within and event.seen_by(presence.who)

    async with aclosing(events):
        async for event in events:
            if event is None or event.id is None or seen(event):
                yield event
