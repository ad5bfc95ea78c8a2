"""SQL: one query, read-only and within limits, as a page or as a stream."""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import Header, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from lakeward.pipelines.ad_hoc import Answer
from lakeward.server.lots import Part, gathered
from lakeward.server.representations import PAGE, REPRESENTATIONS, STREAMS, Representation, chosen
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.row_stream import RowStream
from lakeward.server.rules import needs
from lakeward.sources.formats.json_export import json_objects

router = noun("sql")


class SqlQuery(BaseModel):
    """A query over datasets, which it names in full."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"sql": "select note, sum(amount) as total from main.sales.orders group by note", "limit": 100}
        },
    )

    sql: str = Field(description="one SELECT")
    limit: int | None = Field(
        None,
        ge=0,
        description="rows at most; null: of JSON as many as a page has, of a stream all, up to sql.row_limit",
    )


class SqlPage(BaseModel):
    """The rows of a query."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "columns": {"note": "string", "total": "decimal(38,4)"},
                "versions": {"main.sales.orders": 3},
                "rows": [{"note": "first", "total": 12.5000}],
                "truncated": False,
            }
        }
    )

    columns: dict[str, str] = Field(description="the type of each column, in order")
    versions: dict[str, int] = Field(description="which version of each dataset was read; all are of one instant")
    rows: list[dict[str, Any]] = Field(description="numbers have all their digits: read them with a parser that keeps")
    truncated: bool = Field(description="whether there were more rows")


@router.post(
    "/sql",
    summary="Ask a query",
    response_class=StreamingResponse,
    response_model=None,
    dependencies=[needs("dataset.read", anywhere=True)],
    responses={
        HTTPStatus.OK: {
            "content": {"application/json": {"schema": {"$ref": "#/components/schemas/SqlPage"}}, **STREAMS},
            "description": "Rows as JSON, or a stream of all rows.",
        }
    },
)
def ask(
    rooms: Here,
    query: SqlQuery,
    format: Annotated[
        str | None,
        Query(description=f"how rows are sent: {', '.join([PAGE, *REPRESENTATIONS])}; none: as the header Accept says"),
    ] = None,
    accept: Annotated[list[str] | None, Header()] = None,
) -> Response:
    """Ask one SELECT over datasets, at their newest versions, all of one instant. It changes nothing.

    It computes sealed from files and network, within `sql.memory_limit` and `sql.time_limit_seconds`. The header
    `Lakeward-Versions` of a stream says, as JSON, which versions it read.
    """
    representation = chosen(format, ",".join(accept or []))
    if representation is None:
        most = min(rooms.page_rows if query.limit is None else query.limit, rooms.page_rows)
        with rooms.workspace.sql(query.sql, most) as answer:
            return Response(_page(answer), media_type="application/json")
    rooms.streams.check()
    answer = rooms.workspace.sql(query.sql, query.limit)
    headers = {"Lakeward-Versions": json.dumps(dict(answer.versions)), "Cache-Control": "no-store"}
    return RowStream(gathered(parts_of(answer, representation)), representation.media_type, headers)


def _page(answer: Answer) -> str:
    columns = {name: str(type_) for name, type_ in answer.types.items()}
    rows = [text for batch in answer.reader for text in json_objects(batch, answer.types).to_pylist()]
    # Put together as text: a JSON writer would take numbers for floats.
    head = json.dumps({"columns": columns, "versions": dict(answer.versions)}, ensure_ascii=False)
    return f'{head[:-1]}, "rows": [{",".join(rows)}], "truncated": {json.dumps(answer.truncated)}}}'


def parts_of(answer: Answer, representation: Representation) -> Generator[Sequence[Part]]:
    """Return the bytes of all rows, batch by batch; the query ends with them."""
    with answer:
        yield from representation.encode(answer.reader, answer.types)
