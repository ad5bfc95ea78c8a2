"""Events: what goes on in the workspace, as it happens."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Annotated

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from lakeward.access.guard import principal
from lakeward.access.principal import Place, Principal
from lakeward.server.event_stream import DESCRIBED, event_stream
from lakeward.server.feed import Event, Feed
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
    return event_stream(_seen(rooms.feed, last_event_id, principal(), place))


async def _seen(feed: Feed, last: str | None, who: Principal, within: Place) -> AsyncGenerator[Event | None]:
    """Yield the events that somebody may see."""
    async with aclosing(feed.follow(last)) as following:
        async for event in following:
            if event is None or event.id is None or (event.place[: len(within)] == within and event.seen_by(who)):
                yield event
