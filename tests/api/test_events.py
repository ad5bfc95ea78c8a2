"""What goes on, as it happens: to everybody who follows, to those who come back, and only what they may see."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any, cast

import httpx
import pytest

from api.conftest import Make
from lakeward.access.guard import may_somewhere
from lakeward.access.principal import Grant, Principal
from lakeward.access.roles import Role
from lakeward.control.db import Database
from lakeward.control.goings_on import Happening
from lakeward.errors import Busy
from lakeward.server import feed as feed_module
from lakeward.server import presence as presence_module
from lakeward.server.feed import READY, RESET, Event, Feed
from lakeward.server.presence import Presence
from lakeward.server.routes.events import _seen


def events(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    told: dict[str, Any] = {}
    for line in lines:
        name, _, value = line.partition(": ")
        if line == "" and "event" in told:
            yield {**told, "data": json.loads(told["data"])}
        told = {**told, name: value} if line else {}


def test_what_happens_to_a_dataset_is_told_as_it_happens(make: Make, live: str) -> None:
    dataset, other = make(), make()
    with httpx.Client(timeout=30) as client:
        with client.stream("GET", f"{live}/events", params={"dataset": dataset.name}) as answer:
            assert answer.headers["content-type"].startswith("text/event-stream")
            lines = answer.iter_lines()
            assert next(lines).startswith("retry: ")
            following = events(lines)
            assert next(following)["event"] == "ready"
            other.write([{"id": 8, "note": "another", "amount": 1}])
            dataset.write([{"id": 9, "note": "new", "amount": 1}])
            told = next(_of(following, "version", 1))
            assert (told["data"]["dataset"], told["event"]) == (dataset.name, "version")
            client.post(f"{live}/flips/{dataset.name}/start", json={"until": "check", "wait": True}).raise_for_status()
            stages = [(each["data"]["stage"], each["data"]["event"]) for each in _of(following, "flip", 2)]
            assert stages == [("check", "started"), ("check", "done")]
        header = {"Last-Event-ID": told["id"]}
        with client.stream("GET", f"{live}/events", params={"dataset": dataset.name}, headers=header) as again:
            assert next(_of(events(again.iter_lines()), "flip", 1))["data"]["stage"] == "check"
        with client.stream("GET", f"{live}/events", headers={"Last-Event-ID": "elsewhere-7"}) as lost:
            assert next(events(lost.iter_lines()))["event"] == "reset"
        assert client.get(f"{live}/events", params={"dataset": "main.api.nope"}).status_code == 404


def _of(following: Iterator[dict[str, Any]], kind: str, count: int) -> Iterator[dict[str, Any]]:
    found = (each for each in following if each["event"] == kind)
    return (next(found) for _ in range(count))


def happening(*place: str) -> Happening:
    return Happening("version", place, {"dataset": ".".join(place)})


async def taken(following: AsyncGenerator[Event | None], count: int) -> list[Event]:
    return [event for event in [await anext(following) for _ in range(count)] if event is not None]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch) -> Feed:
    """One that hears only what a test tells it."""

    async def look(self: Feed) -> None:
        self._ready.set()
        await asyncio.Event().wait()

    monkeypatch.setattr(Feed, "_look", look)
    return Feed(cast(Database, None))


def test_nobody_is_told_of_what_they_may_not_see(feed: Feed) -> None:
    ana = Principal("ana", (Grant(Role.VIEWER, ("main", "sales")),))

    async def run() -> list[str]:
        presence = Presence(ana, lambda: ana)
        async with aclosing(_seen(feed.follow(f"{feed._run}-0"), presence, ())) as following:
            assert [event.kind for event in await taken(following, 1)] == ["ready"]
            feed.tell([happening("main", "secret", "a"), happening("main", "sales", "b")])
            return [event.data for event in await taken(following, 1)]

    assert asyncio.run(run()) == ['{"dataset": "main.sales.b"}']


def test_what_is_taken_from_who_follows_counts_at_once(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while nothing happens that they would be told of: a role first, and then the token."""
    monkeypatch.setattr(presence_module, "ASKED_SECONDS", 0.0)
    whole = Principal("ana", (Grant(Role.VIEWER),))
    now: list[Principal | None] = [whole]
    presence = Presence(whole, lambda: now[0])

    async def run() -> list[str]:
        following = presence.follow(feed.follow(f"{feed._run}-0"), lambda: may_somewhere("dataset.read"))
        seen: list[str] = []
        async for event in _seen(following, presence, ()):
            seen.append(str(event and event.data))
            if len(seen) == 1:
                now[0] = replace(whole, within=("main", "sales"))
                feed.tell([happening("main", "hr", "a"), happening("main", "sales", "b")])
            else:
                now[0] = None
                feed.tell([happening("main", "hr", "c")])
        return seen

    assert asyncio.run(run()) == ["{}", '{"dataset": "main.sales.b"}']
    assert feed.followers == 0


def test_who_is_too_slow_begins_anew_and_who_leaves_holds_nothing(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feed_module, "BEAT_SECONDS", 0.01)
    monkeypatch.setattr(feed_module, "MOST_FOLLOWERS", 1)

    async def run() -> None:
        async with aclosing(feed.follow()) as following:
            assert await anext(following) is READY
            assert await anext(following) is None
            feed.tell([happening("a", "b", str(number)) for number in range(feed_module.KEPT + 5)])
            assert await anext(following) is RESET
            feed.tell([happening("a", "b", "c")])
            assert [event.data for event in await taken(following, 1)] == ['{"dataset": "a.b.c"}']
            with pytest.raises(Busy):
                await anext(feed.follow())
        assert feed.followers == 0
        ended = feed.follow()
        assert await anext(ended) is READY
        await feed.close()
        assert [each async for each in ended] == []

    asyncio.run(run())
