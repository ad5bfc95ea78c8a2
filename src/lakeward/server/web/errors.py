"""What an error becomes for people: a page. Programs get a problem document; see `lakeward.server.problems`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from lakeward.errors import LakewardError
from lakeward.server.perimeter import FOR_PROGRAMS
from lakeward.server.problems import status_of
from lakeward.server.web.messages import Said
from lakeward.server.web.page import failed

log = logging.getLogger("lakeward.server")

Handler = Callable[[Request, Exception], Response | Awaitable[Response]]


def wants_page(request: Request) -> bool:
    """Say whether a person asks, with a browser."""
    if request.url.path.startswith(FOR_PROGRAMS):
        return False
    return "hx-request" in request.headers or "text/html" in request.headers.get("accept", "")


def register(app: FastAPI) -> None:
    """Let errors be answered with a page where a person asks; behind that, as they were before."""
    for kind, said in (
        (LakewardError, _named),
        (RequestValidationError, _invalid),
        (HTTPException, _http),
        (Exception, _unexpected),
    ):
        app.add_exception_handler(kind, _for_people(said, app.exception_handlers[kind]))


def _for_people(said: Callable[[Exception], tuple[Said, HTTPStatus]], otherwise: Handler) -> Handler:
    async def handler(request: Request, error: Exception) -> Response:
        if wants_page(request):
            return failed(request, *said(error))
        answer = otherwise(request, error)
        return await answer if isinstance(answer, Awaitable) else answer

    return handler


def _named(error: Exception) -> tuple[Said, HTTPStatus]:
    assert isinstance(error, LakewardError)
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s", error)
    return Said.of(error), status


def _invalid(error: Exception) -> tuple[Said, HTTPStatus]:
    assert isinstance(error, RequestValidationError)
    # Without the input, which may be a secret, or of any size.
    wrong = "; ".join(f"{each['loc'][-1]}: {each['msg']}" for each in error.errors())
    return Said("error", wrong, "nothing was changed"), HTTPStatus.BAD_REQUEST


def _http(error: Exception) -> tuple[Said, HTTPStatus]:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    if status is HTTPStatus.NOT_FOUND:
        return Said("error", "there is no such page", next_step="the navigation shows those that there are"), status
    return Said("error", str(error.detail), "nothing was changed"), status


def _unexpected(error: Exception) -> tuple[Said, HTTPStatus]:
    log.error("unexpected %s", type(error).__name__, exc_info=error)
    what = f"unexpected {type(error).__name__}; the log of the server has more"
    return Said("error", what, next_step="report it as a fault of Lakeward, with what the log says"), (
        HTTPStatus.INTERNAL_SERVER_ERROR
    )
