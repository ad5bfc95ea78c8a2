"""What is refused before anything is looked at: requests that a web page made, or that are too large.

The server of one machine asks nobody for a name. Two things could use it from outside: a page in a browser of that
machine, whose requests carry its own `Origin`, or at least tell in `Sec-Fetch-Site` that they are another site's; and a
page whose host name was made to point here (DNS rebinding), whose requests carry that name as `Host`.
"""

from __future__ import annotations

from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lakeward.server.problems import problem

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

FOR_PROGRAMS = ("/api/", "/lakehouse/", "/healthz", "/readyz", "/metrics")
"""How paths begin that are no pages."""

ROWS = ("/rows", "/ingest", "/pipelines/plan", "/pipelines/apply", "/models", "/commands")
"""How paths end to which rows are sent, or files."""

DOCUMENT_LIMIT = 1 << 20
"""How many bytes any other body may have: it is read into memory."""


class TooLarge(HTTPException):
    """A request's body has more bytes than are taken.

    Of this class because FastAPI answers any other error with 400 that comes while it reads a document.
    """

    def __init__(self, detail: str) -> None:
        super().__init__(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)


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
        headers = Headers(scope=scope)
        limit = self._body_limit if scope["path"].endswith(ROWS) else min(self._body_limit, DOCUMENT_LIMIT)
        refusal = self._refusal(scope["method"], scope["path"], headers, limit)
        if refusal is not None:
            status, detail = refusal
            await problem(status, status.phrase, detail, safe="nothing was changed")(scope, receive, send)
            return
        await self._app(scope, self._counted(receive, limit), send)

    def _too_large(self, limit: int) -> str:
        said = "; the setting server.body_limit_bytes says how many" if limit == self._body_limit else ""
        return f"the body has more than {limit:,} bytes{said}"

    def _refusal(self, method: str, path: str, headers: Headers, limit: int) -> tuple[HTTPStatus, str] | None:
        host = _host_of(f"//{headers.get('host', '')}")
        if host not in self._hosts:
            return HTTPStatus.MISDIRECTED_REQUEST, f"this server is not called {host or 'nothing'!r}"
        for origin in headers.getlist("origin"):
            if origin.partition("://")[2] != headers["host"]:
                return HTTPStatus.FORBIDDEN, f"pages of {origin} may not call this server"
        # What a page loads as an image or a script has no `Origin`.
        for site in headers.getlist("sec-fetch-site"):
            if site not in ("same-origin", "none") and not _follows_link(method, path, headers):
                return HTTPStatus.FORBIDDEN, "pages of other sites may not call this server"
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > limit:
            return HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large(limit)
        return None

    def _counted(self, receive: Receive, limit: int) -> Receive:
        left = limit

        async def counted() -> Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise TooLarge(self._too_large(limit))
            return message

        return counted


def _follows_link(method: str, path: str, headers: Headers) -> bool:
    """Say whether a person followed a link of another site to a page, or came back from a login elsewhere.

    Nothing is changed by that, and the other site sees nothing of the answer: it is shown in a window of its own.
    """
    return (
        method == "GET"
        and not path.startswith(FOR_PROGRAMS)
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _host_of(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None
