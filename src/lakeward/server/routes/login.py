"""Logging in and out with a browser: a session is made of a token, or of what a provider of names says."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Form, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse

from lakeward.control.tokens import TOKEN
from lakeward.errors import Forbidden, UnknownObject
from lakeward.server.logins import SESSION_COOKIE, Logins, address_of, logins_of, within
from lakeward.server.oidc import STATE_COOKIE, Oidc
from lakeward.server.problems import problem

PREFIX = ""
CALLBACK = "/login/oidc/callback"

router = APIRouter(tags=["login"], include_in_schema=False)


@router.post("/login")
def log_in(
    request: Request, token: Annotated[str, Form(max_length=200)], next: Annotated[str, Form(max_length=2000)] = "/"
) -> Response:
    """Begin a session with a token, and go on to where somebody wanted to."""
    logins, to, address = _required(request), within(next), address_of(request.scope)
    wait = logins.rates.refused(address)
    if wait is not None:
        detail = f"too many tokens that are none came from {address}"
        answer: Response = problem(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", detail, safe="nothing was changed")
        answer.headers["Retry-After"] = str(wait)
        return answer
    shown = logins.access.shown(token.strip())
    if shown is None or shown.kind != TOKEN:
        logins.rates.failed(address)
        return RedirectResponse(f"/login?failed=token&next={quote(to, safe='/')}", HTTPStatus.SEE_OTHER)
    session = logins.access.session(shown.principal, shown, hours=logins.hours)
    answer = RedirectResponse(to, HTTPStatus.SEE_OTHER)
    logins.keep(request, answer, session)
    return answer


@router.post("/logout")
def log_out(request: Request) -> Response:
    """End the session."""
    answer = RedirectResponse("/login", HTTPStatus.SEE_OTHER)
    logins, session = logins_of(request), request.cookies.get(SESSION_COOKIE)
    if logins is not None and session is not None:
        logins.access.end_session(session)
    answer.delete_cookie(SESSION_COOKIE, httponly=True, samesite="strict")
    return answer


@router.get("/login/oidc")
def begin_oidc(request: Request, next: str = "/") -> Response:
    """Send the browser to the provider of names."""
    url, state = _oidc(request).begin(_callback(request), within(next))
    answer = RedirectResponse(url, HTTPStatus.SEE_OTHER)
    # Lax: the browser comes back from another site.
    secure = request.url.scheme == "https"
    answer.set_cookie(STATE_COOKIE, state, max_age=600, path=CALLBACK, httponly=True, samesite="lax", secure=secure)
    return answer


@router.get(CALLBACK)
def end_oidc(request: Request, state: str | None = None, code: str | None = None) -> Response:
    """Begin a session of whom the provider of names tells."""
    logins, oidc = _required(request), _oidc(request)
    user, to = oidc.finish(_callback(request), state, request.cookies.get(STATE_COOKIE), code)
    session = logins.access.session(logins.access.principal_of(user), hours=logins.hours)
    # A redirect would still be of the other site's, and a browser would not send the cookie that is strict with it.
    # The icon is none: a browser would ask for one that is not there.
    head = '<!doctype html><link rel="icon" href="data:,"><title>…</title>'
    answer = HTMLResponse(f'{head}<meta http-equiv="refresh" content="0; url={_in_html(to)}">')
    answer.headers["Cache-Control"] = "no-store"
    logins.keep(request, answer, session)
    answer.delete_cookie(STATE_COOKIE, path=CALLBACK, httponly=True, samesite="lax")
    return answer


def _required(request: Request) -> Logins:
    found = logins_of(request)
    if found is None:
        raise Forbidden("nobody has to log in here", safe="nothing was changed", next_step="go on without")
    return found


def _oidc(request: Request) -> Oidc:
    found = _required(request).oidc
    if found is None:
        raise UnknownObject("there is no provider of names", next_step="log in with a token; or set server.oidc")
    return found


def _callback(request: Request) -> str:
    return str(request.base_url).rstrip("/") + CALLBACK


def _in_html(address: str) -> str:
    return quote(address, safe="/?=&%+,:;@-._~").replace("&", "&amp;")
