"""What is refused before anything is looked at: requests that a web page made, or that are too large.

The server of one machine asks nobody for a name. Two things could use it from outside: a page in a browser of that
machine, whose requests carry its own `Origin`; and a page whose host name was made to point here (DNS rebinding), whose
requests carry that name as `Host`.
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakeward.server.problems import problem

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class TooLarge(Exception):
    """A request's body has more bytes than are taken."""


class Perimeter:
    """Wraps an application.

    Args:
        app: what is behind it.
        hosts: names by which the server may be called.
        body_limit: bytes of a request's body.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str], body_limit: int) -> None:
        self._app = app
        self._hosts = hosts
        self._body_limit = body_limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(headers)
        if refusal is not None:
            status, detail = refusal
            await problem(status, status.phrase, detail, safe="nothing was changed")(scope, receive, send)
            return
        started = False

        async def sent(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, self._counted(receive), sent)
        except TooLarge:
            if started:
                raise
            status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
            answer = problem(status, status.phrase, self._too_large, safe="nothing was changed")
            await answer(scope, receive, send)

    @property
    def _too_large(self) -> str:
        return f"the body has more than {self._body_limit:,} bytes; the setting server.body_limit_bytes says how many"

    def _refusal(self, headers: dict[str, str]) -> tuple[HTTPStatus, str] | None:
        host = _host_of(f"//{headers.get('host', '')}")
        if host not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, f"this server is not called {host or 'nothing'!r}"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != headers.get("host"):
            return HTTPStatus.FORBIDDEN, f"pages of {origin} may not call this server"
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._body_limit:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large
        return None

    def _counted(self, receive: Receive) -> Receive:
        left = self._body_limit

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLarge
            return message

        return counted


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
