"""What a page says once: what was done, or what went wrong, what is safe, and what leads on."""

from __future__ import annotations

import base64
import binascii
import json
from dataclasses import asdict, dataclass
from http import HTTPStatus
from typing import Literal

from fastapi import Request, Response
from fastapi.responses import RedirectResponse

from lakeward.errors import LakewardError

COOKIE = "lakeward_said"
LONGEST = 600
"""So many characters of a text go along with a redirect; browsers keep about 4,000 bytes in a cookie."""

Kind = Literal["done", "info", "warning", "error"]


@dataclass(frozen=True)
class Said:
    """One message.

    Args:
        kind: how it is meant.
        text: what there is to say.
        safe: what has not been harmed.
        next_step: what leads on, a command or a sentence.
    """

    kind: Kind
    text: str
    safe: str | None = None
    next_step: str | None = None

    @classmethod
    def of(cls, error: LakewardError) -> Said:
        """Return what an error says."""
        return cls("error", error.message, error.safe, error.next_step)


def elsewhere(request: Request, to: str, said: Said | None = None) -> Response:
    """Answer a form: the browser goes to another page, which says what became of it.

    Args:
        request: of the form.
        to: the page, by its path.
        said: what it says.
    """
    if "hx-request" in request.headers:
        answer = Response(status_code=HTTPStatus.NO_CONTENT, headers={"HX-Redirect": to})
    else:
        answer = RedirectResponse(to, HTTPStatus.SEE_OTHER)
    if said is not None:
        short = Said(said.kind, said.text[:LONGEST], _cut(said.safe), _cut(said.next_step))
        packed = base64.urlsafe_b64encode(json.dumps(asdict(short)).encode()).decode()
        answer.set_cookie(
            COOKIE, packed, max_age=60, httponly=True, samesite="strict", secure=request.url.scheme == "https"
        )
    return answer


def said_before(request: Request) -> Said | None:
    """Return what the request before left to be said; None: nothing that can be read."""
    packed = request.cookies.get(COOKIE)
    if not packed:
        return None
    try:
        return Said(**json.loads(base64.urlsafe_b64decode(packed)))
    except (binascii.Error, ValueError, TypeError):
        return None


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:LONGEST]
