"""What an error becomes: a status, and a problem document (RFC 9457) with the same facts as on the command line."""

from __future__ import annotations

import logging
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from lakeward.errors import (
    Busy,
    ConflictError,
    DatabaseUnavailable,
    DataError,
    ExpectationFailed,
    Forbidden,
    KeyReused,
    LakewardError,
    NameTaken,
    NotAllowed,
    ParityMismatch,
    PipelineError,
    SourceError,
    SpecError,
    SqlError,
    StorageFull,
    UnknownObject,
    UsageError,
)

MEDIA_TYPE = "application/problem+json"

STATUSES: tuple[tuple[type[LakewardError], HTTPStatus], ...] = (
    (UnknownObject, HTTPStatus.NOT_FOUND),
    (NameTaken, HTTPStatus.CONFLICT),
    (KeyReused, HTTPStatus.CONFLICT),
    (NotAllowed, HTTPStatus.FORBIDDEN),
    (Forbidden, HTTPStatus.FORBIDDEN),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (SpecError, HTTPStatus.BAD_REQUEST),
    (SqlError, HTTPStatus.BAD_REQUEST),
    (ConflictError, HTTPStatus.CONFLICT),
    (ParityMismatch, HTTPStatus.CONFLICT),
    (DataError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (ExpectationFailed, HTTPStatus.UNPROCESSABLE_ENTITY),
    (PipelineError, HTTPStatus.UNPROCESSABLE_ENTITY),
    (SourceError, HTTPStatus.BAD_GATEWAY),
    (DatabaseUnavailable, HTTPStatus.SERVICE_UNAVAILABLE),
    (Busy, HTTPStatus.SERVICE_UNAVAILABLE),
    (StorageFull, HTTPStatus.INSUFFICIENT_STORAGE),
)
"""The status of each kind of error: the first that fits. All others are a fault on our side."""

AGAIN_SECONDS = 2
"""So long whoever met a busy server is told to wait."""

log = logging.getLogger("lakeward.server")


class Problem(BaseModel):
    """What went wrong."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "title": "UnknownObject",
                "status": 404,
                "detail": "there is no dataset 'main.sales.order'; did you mean main.sales.orders?",
                "safe": None,
                "next_steps": ["lakeward dataset list"],
                "fields": {},
            }
        }
    )

    title: str = Field(description="the kind of error, as the command line names it")
    status: int
    detail: str = Field(description="what is wrong, naming the thing")
    safe: str | None = Field(None, description="what has not been harmed")
    next_steps: list[str] = Field([], description="what leads out of it")
    fields: dict[str, object] = Field({}, description="the facts of `detail` for programs")


def status_of(error: LakewardError) -> HTTPStatus:
    """Return the status of an error."""
    fits = (status for kind, status in STATUSES if isinstance(error, kind))
    return next(fits, HTTPStatus.INTERNAL_SERVER_ERROR)


def problem(status: HTTPStatus, title: str, detail: str, **more: object) -> JSONResponse:
    """Return the answer that tells what went wrong."""
    document = Problem.model_validate({"title": title, "status": status.value, "detail": detail, **more})
    return JSONResponse(document.model_dump(mode="json"), status, media_type=MEDIA_TYPE)


def register(app: FastAPI) -> None:
    """Let every error be answered with a problem document."""
    app.add_exception_handler(LakewardError, _named)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, _gone)
    app.add_exception_handler(Exception, _unexpected)


def _named(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, LakewardError)
    return named(error)


def named(error: LakewardError) -> JSONResponse:
    """Return the answer that tells of an error."""
    status = status_of(error)
    if status is HTTPStatus.INTERNAL_SERVER_ERROR:
        log.error("%s", error)
    facts = error.to_json()
    more = {name: facts[name] for name in ("safe", "next_steps", "fields")}
    answer = problem(status, type(error).__name__, error.message, **more)
    if isinstance(error, Busy):
        answer.headers["Retry-After"] = str(AGAIN_SECONDS)
    return answer


def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    # The input is left out: it may be a secret, or of any size.
    wrong = [{"where": ".".join(map(str, each["loc"])), "what": each["msg"]} for each in error.errors()]
    detail = "; ".join(f"{each['where']}: {each['what']}" for each in wrong)
    return problem(HTTPStatus.BAD_REQUEST, "UsageError", detail, safe="nothing was changed", fields={"errors": wrong})


def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    answer = problem(status, status.phrase, str(error.detail), safe="nothing was changed")
    answer.headers.update(error.headers or {})
    return answer


def _gone(_: Request, error: Exception) -> JSONResponse:
    log.info("a client went away before all of its request was here")
    return problem(HTTPStatus.BAD_REQUEST, "UsageError", "the request broke off", safe="nothing was changed")


def _unexpected(request: Request, error: Exception) -> JSONResponse:
    log.error("unexpected %s", type(error).__name__, exc_info=error)
    answer = problem(
        HTTPStatus.INTERNAL_SERVER_ERROR,
        "Unexpected",
        f"unexpected {type(error).__name__}; the log of the server has more",
        next_steps=["report it as a fault of Lakeward, with what the log says"],
        fields={"request": getattr(request.state, "request_id", None)},
    )
    # The connection is closed after it; without a word, the client's next request would be lost there.
    answer.headers["Connection"] = "close"
    return answer
