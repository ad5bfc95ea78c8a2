"""Signing in. Where nobody has to, the page says so."""

from __future__ import annotations

from urllib.parse import quote

from fastapi import APIRouter, Request, Response

from lakeward.server.logins import logins_of, within
from lakeward.server.web.messages import Said
from lakeward.server.web.page import page

router = APIRouter()


WRONG = Said("error", "The token is none that counts.", next_step="`lakeward token list` shows admins which do")


@router.get("/login")
def login(request: Request, next: str = "/", failed: str | None = None) -> Response:
    """Show how to sign in."""
    logins, to = logins_of(request), within(next)
    oidc = logins.oidc if logins is not None else None
    return page(
        request,
        "login.html",
        form="Token" if logins is not None else None,
        oidc=(oidc.name, f"/login/oidc?next={quote(to, safe='/')}") if oidc is not None else None,
        problem=WRONG if failed is not None else None,
        next=to,
    )
