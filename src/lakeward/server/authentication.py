"""Finds out who asks, before anything is looked at, and lets them act while their request is answered.

A program shows a token, `Authorization: Bearer lw_…`; a browser has a session, which a login made of one. What they may
do is asked where it is done: see `lakeward.access.guard`.
"""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Final
from urllib.parse import quote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Receive, Scope, Send

from lakeward.access.guard import acting
from lakeward.access.principal import NOBODY, Principal
from lakeward.control.tokens import SESSION, TOKEN
from lakeward.errors import LakewardError
from lakeward.server.logins import SESSION_COOKIE, Logins, address_of
from lakeward.server.presence import ALONE, IN_SCOPE, Presence
from lakeward.server.problems import named, problem
from lakeward.server.web.errors import wants_page
from lakeward.wiring.access import Access

PUBLIC: Final = ("/healthz", "/readyz", "/login", "/logout", "/login/oidc", "/login/oidc/callback")
"""The paths that whoever is nobody may ask for, besides the files of pages."""

SIGNED_IN: Final = ("/api/v1/openapi.json",)
"""The paths that everybody may ask for who is somebody: they tell of no dataset, or of those alone that one sees."""

FILES: Final = "/static/"

_BEARER = "bearer "

_NOBODY = Presence(NOBODY, lambda: None)


class Authentication:
    """Wraps an application.

    Args:
        app: what is behind it.
        logins: what was told of logins; None: nobody is asked for a name, and whoever can ask is the owner.
    """

    def __init__(self, app: ASGIApp, logins: Logins | None) -> None:
        self._app = app
        self._logins = logins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on as somebody's, or refuse it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        who: Presence | Response = ALONE
        if self._logins is not None:
            try:
                who = await self._who(Request(scope), self._logins)
            except LakewardError as error:
                who = named(error)
        if isinstance(who, Response):
            await who(scope, receive, send)
            return
        scope[IN_SCOPE] = who
        with acting(who.who):
            await self._app(scope, receive, send)

    async def _who(self, request: Request, logins: Logins) -> Presence | Response:
        """Return who asks, or what they are answered who may not."""
        path, address = request.url.path, address_of(request.scope)
        public = path in PUBLIC or path.startswith(FILES)
        given, kind = _given(request)
        if given is None:
            return _NOBODY if public else _who_are_you(request)
        wait = logins.rates.refused(address)
        if wait is not None:
            return _too_often(f"too many tokens that are none came from {address}", wait)
        shown = await run_in_threadpool(logins.access.shown, given)
        if shown is None or shown.kind != kind:
            # A session that is over is no attempt.
            if kind == TOKEN:
                logins.rates.failed(address)
            return _NOBODY if public else _who_are_you(request, f"the {kind} is none that counts")
        wait = logins.rates.hit(shown.principal.name) if not public else None
        if wait is not None:
            return _too_often(f"{shown.principal.name} asks more often than server.rate_limit lets them", wait)
        return Presence(shown.principal, partial(_again, logins.access, given))


def _again(access: Access, given: str) -> Principal | None:
    shown = access.shown(given)
    return shown.principal if shown is not None else None


def _given(request: Request) -> tuple[str | None, str]:
    """Return what a request shows, and of which kind it has to be."""
    header = request.headers.get("authorization")
    if header is not None:
        text = header.strip()
        return (text[len(_BEARER) :].strip() if text.lower().startswith(_BEARER) else ""), TOKEN
    return request.cookies.get(SESSION_COOKIE), SESSION


def _who_are_you(request: Request, why: str = "who asks has to say who they are") -> Response:
    """Answer with where to log in, or what to show."""
    if wants_page(request):
        here = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        login = f"/login?next={quote(here, safe='/')}" if request.method == "GET" else "/login"
        if "hx-request" in request.headers:
            return Response(status_code=HTTPStatus.UNAUTHORIZED, headers={"HX-Redirect": "/login"})
        return RedirectResponse(login, HTTPStatus.SEE_OTHER)
    answer = problem(
        HTTPStatus.UNAUTHORIZED,
        "Unauthenticated",
        why,
        safe="nothing was changed",
        next_steps=["send a token: `Authorization: Bearer lw_…`; an admin makes one: `lakeward token add --user NAME`"],
    )
    answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def _too_often(detail: str, seconds: int) -> Response:
    answer = problem(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", detail, safe="nothing was changed")
    answer.headers["Retry-After"] = str(seconds)
    return answer
