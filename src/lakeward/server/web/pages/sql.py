"""The SQL page: one query, read-only and within limits, its rows looked at or taken along."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

import pyarrow as pa
from fastapi import APIRouter, Form, Request, Response

from lakeward.errors import LakewardError, UsageError
from lakeward.pipelines.ad_hoc import Answer
from lakeward.server.lots import gathered
from lakeward.server.problems import status_of
from lakeward.server.representations import REPRESENTATIONS
from lakeward.server.rooms import Here, Rooms
from lakeward.server.routes.sql import parts_of
from lakeward.server.row_stream import RowStream
from lakeward.server.rules import needs
from lakeward.server.web.grid import Grid, grid
from lakeward.server.web.messages import Said
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page

PLACE = Place("SQL", "/sql", 30, "dataset.read")
MOST = 1_000
"""So many rows are shown; all of them can be taken along as a file."""

AT_ONCE = 100
"""So many of them at a time."""

SHOWN_DATASETS = 300

DOWNLOADS = {"csv": "result.csv", "arrow": "result.arrows"}
"""The name of a file, by its format."""

router = APIRouter(dependencies=[needs("dataset.read", anywhere=True)])


@router.get("/sql")
def sql(request: Request, rooms: Here, sql: str = "") -> Response:
    """Show the page. A query in the address is shown, and not run: whoever follows a link has not asked for it."""
    return _page(request, rooms, sql)


@router.post("/sql")
def run(request: Request, rooms: Here, sql: Annotated[str, Form()] = "") -> Response:
    """Run a query, and show its first rows."""
    try:
        with rooms.workspace.sql(_asked(sql), MOST) as answer:
            table = answer.reader.read_all()
        return _page(request, rooms, sql, answer=answer, found=_grid(table, answer))
    except LakewardError as error:
        return _page(request, rooms, sql, problem=error)


@router.post("/sql/download")
def download(rooms: Here, sql: Annotated[str, Form()], format: Annotated[str, Form()] = "csv") -> Response:
    """Run a query, and send all of its rows as a file."""
    if format not in DOWNLOADS:
        raise UsageError(f"unknown format {format!r}; there are {', '.join(DOWNLOADS)}", format=format)
    representation = REPRESENTATIONS[format]
    answer = rooms.workspace.sql(_asked(sql))
    headers = {"Content-Disposition": f'attachment; filename="{DOWNLOADS[format]}"', "Cache-Control": "no-store"}
    return RowStream(gathered(parts_of(answer, representation)), representation.media_type, headers)


def _asked(sql: str) -> str:
    # Forms end lines as no file does.
    text = sql.replace("\r\n", "\n")
    if not text.strip():
        raise UsageError("there is no query", safe="nothing was changed", next_step="write one: select … from …")
    return text


def _grid(table: pa.Table, answer: Answer) -> Grid:
    return grid(table, answer.types)


def _page(
    request: Request,
    rooms: Rooms,
    sql: str,
    *,
    answer: Answer | None = None,
    found: Grid | None = None,
    problem: LakewardError | None = None,
) -> Response:
    whole = request.headers.get("hx-target") != "result"
    return page(
        request,
        "sql.html",
        part="result",
        # htmx shows what comes with 200 alone, and the message has its place in the page.
        status=status_of(problem) if problem is not None and whole else HTTPStatus.OK,
        sql=sql,
        found=found,
        answer=answer,
        at_once=AT_ONCE,
        most=MOST,
        problem=Said.of(problem) if problem is not None else None,
        limits=rooms.workspace.settings.values.sql,
        datasets=rooms.workspace.tree.datasets()[:SHOWN_DATASETS] if whole else [],
    )
