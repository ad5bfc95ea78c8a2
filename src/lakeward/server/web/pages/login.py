"""Signing in. Where nobody has to, the page says so."""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from lakeward.server.web.page import page

router = APIRouter()


@router.get("/login")
def login(request: Request) -> Response:
    """Show how to sign in."""
    return page(request, "login.html", form=None, oidc=None, problem=None, next="/")
