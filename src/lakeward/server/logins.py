"""Who logs in to the server, and with what: tokens, sessions of a browser, a provider of names."""

from __future__ import annotations

from dataclasses import dataclass

from fastapi import Request, Response
from starlette.types import Scope

from lakeward.server.oidc import Oidc
from lakeward.server.rates import Rates
from lakeward.wiring.access import Access

SESSION_COOKIE = "lakeward_session"


@dataclass(frozen=True)
class Logins:
    """What the server was told of logins; `app.state.logins`.

    Args:
        access: tokens, and what their users may do.
        rates: how often somebody may ask.
        hours: how long a session lasts.
        oidc: a provider of names, if there is one.
    """

    access: Access
    rates: Rates
    hours: float
    oidc: Oidc | None = None

    def keep(self, request: Request, answer: Response, session: str) -> None:
        """Give a browser its session. A page's scripts can't read it, and pages of other sites can't use it."""
        answer.set_cookie(
            SESSION_COOKIE,
            session,
            max_age=int(self.hours * 3600),
            httponly=True,
            samesite="strict",
            secure=request.url.scheme == "https",
        )


def logins_of(request: Request) -> Logins | None:
    """Return what was told of logins; None: nobody is asked for a name."""
    found: Logins | None = request.app.state.logins
    return found


def within(address: str | None) -> str:
    """Return where to go after a login: an address of this server, whatever was asked for."""
    there = address or "/"
    # A browser takes a second slash, of whatever kind, for the beginning of a host's name.
    safe = there.startswith("/") and there[1:2] not in ("/", "\\") and there.isprintable()
    return there if safe else "/"


def address_of(scope: Scope) -> str:
    """Return the address that a request comes from."""
    client = scope.get("client")
    return str(client[0]) if client else "unknown"
