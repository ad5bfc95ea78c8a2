"""What is told of every request: an id, a line in the log, numbers, and a happening for whoever listens.

It stands around all else, so that what is refused before a route is looked for is told of as well.
"""

from __future__ import annotations

import logging
import re
import time
import uuid
from collections.abc import Callable

from starlette.datastructures import Headers, MutableHeaders
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakeward.happenings import Happening, happening
from lakeward.logs import FACTS

REQUEST_ID = "X-Request-Id"
_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")

UNKNOWN = "unknown"
"""The route of a request that there is none for; a path of somebody's choice is no name of a series."""

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})

log = logging.getLogger("lakeward.access")

Answered = Callable[[str, str, int, float], None]
"""Is told method, route, status and seconds of a request."""


class Told:
    """Wraps an application.

    Args:
        app: what is behind it.
        answered: is told of each request when its answer is sent.
    """

    def __init__(self, app: ASGIApp, answered: Answered) -> None:
        self._app = app
        self._answered = answered

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and tell of it. `HEAD` is `GET` whose body is not sent, and not made either."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        request = given if _ID.fullmatch(given) else uuid.uuid4().hex
        answer = _Answer(send, request, without_body=scope["method"] == "HEAD")
        inner = {**scope, "method": "GET"} if answer.without_body else scope
        inner.setdefault("state", {})["request_id"] = request
        trace = headers.get("traceparent")
        facts = {"request": request, "method": scope["method"], "path": scope["path"], "traceparent": trace}
        with happening("request", **facts) as told:
            started = time.perf_counter()
            try:
                await self._app(inner, receive, answer)
            finally:
                told.facts["route"] = _route_of(inner)
                self._tell(told, answer, time.perf_counter() - started)

    def _tell(self, told: Happening, answer: _Answer, seconds: float) -> None:
        facts = told.facts
        facts["status"] = answer.status
        method = facts["method"] if facts["method"] in METHODS else UNKNOWN
        self._answered(method, facts["route"], answer.status, seconds)
        broken = "" if answer.complete else ", broken off"
        log.info(
            "%s %s %d in %.3f s%s",
            facts["method"],
            facts["path"],
            answer.status,
            seconds,
            broken,
            extra={
                FACTS: {
                    **{name: facts[name] for name in ("method", "path", "route", "status")},
                    "seconds": round(seconds, 6),
                    "bytes": answer.size,
                    "complete": answer.complete,
                }
            },
        )


class _Answer:
    """Sends an answer on, and sees what it is."""

    def __init__(self, send: Send, request: str, *, without_body: bool) -> None:
        self.without_body = without_body
        self.status = 500
        self.size = 0
        self.complete = False
        self._send = send
        self._request = request

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            MutableHeaders(scope=message)[REQUEST_ID] = self._request
        elif message["type"] == "http.response.body":
            if self.without_body:
                if self.complete:
                    return
                # The server then says to who makes the body that nobody reads it, as if the client were gone.
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            self.size += len(message.get("body", b""))
            self.complete = not message.get("more_body", False)
        await self._send(message)


def _route_of(scope: Scope) -> str:
    """Return the template of the route that answered, below whatever prefix it was included."""
    route = scope.get("route")
    if not isinstance(route, Route):
        return UNKNOWN
    path: str = scope["path"]
    own = route.url_path_for(route.name, **scope.get("path_params", {}))
    return (path.removesuffix(own) if path.endswith(own) else "") + route.path
