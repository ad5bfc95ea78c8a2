"""Datasets: their list, their rows out and in, what changed in them, their history and checksum."""

from __future__ import annotations

from functools import partial
from http import HTTPStatus
from typing import Annotated, Any

from anyio.to_thread import run_sync
from fastapi import Header, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.concurrency import run_in_threadpool

from lakeward.errors import UsageError
from lakeward.server.bodies import (
    FORMATS,
    AllowEmpty,
    ContentType,
    IdempotencyKey,
    checked_headers,
    format_of,
    received,
)
from lakeward.server.documents.datasets import (
    DatasetList,
    DatasetSummary,
    Digest,
    NewDataset,
    Page,
    Written,
)
from lakeward.server.documents.ledger import Transaction, TransactionPage
from lakeward.server.incoming import write_file
from lakeward.server.number_pages import Before, cut
from lakeward.server.pages import LARGEST, Cursor, page_of
from lakeward.server.representations import PAGE, REPRESENTATIONS, STREAMS, chosen
from lakeward.server.rooms import Here
from lakeward.server.routing import NAME, Name, noun
from lakeward.server.row_answers import of_version, streamed
from lakeward.server.rules import needs
from lakeward.storage.verbs import VERBS
from lakeward.types.digest import EMPTY

Columns = Annotated[list[str] | None, Query(alias="column", description="which columns, in order; none: all")]
Where = Annotated[str | None, Query(description="a SQL predicate over the row's columns", examples=["amount > 10"])]
Version = Annotated[
    int | None, Query(ge=0, le=LARGEST, description="the dataset as it was at this version; none: the newest")
]
Since = Annotated[
    int | None, Query(ge=0, le=LARGEST, description="only rows that were added or updated after this version")
]
Identity = Annotated[bool, Query(description="add the identity columns")]
Arm = Annotated[str | None, Query(description="read from this arm, which must hold the version; none: as routed")]
Accept = Annotated[list[str] | None, Header()]
Format = Annotated[
    str | None,
    Query(description=f"how rows are sent: {', '.join([PAGE, *REPRESENTATIONS])}; none: as the header Accept says"),
]

BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": "The rows. JSON is an array of objects, or one object on each line.",
        "content": {
            "application/json": {
                "schema": {"type": "array", "items": {"type": "object"}},
                "example": [{"id": 1, "note": "first", "amount": 12.5}],
            },
            **{
                media_type: {"schema": {"type": "string", "format": "binary"}}
                for media_type in FORMATS
                if media_type != "application/json"
            },
        },
    }
}

router = noun("datasets")
READ = needs("dataset.read", of="name")


@router.get("/datasets", summary="List datasets", dependencies=[needs("dataset.read", anywhere=True)])
def list_datasets(rooms: Here) -> DatasetList:
    """Every dataset, by name."""
    return DatasetList(datasets=[DatasetSummary.of(each) for each in rooms.workspace.datasets()])


@router.post(
    "/datasets",
    status_code=HTTPStatus.CREATED,
    summary="Make a dataset",
    dependencies=[needs("dataset.create", anywhere=True)],
    responses={HTTPStatus.OK: {"model": DatasetSummary, "description": "It was there, as declared."}},
)
def create_dataset(rooms: Here, wanted: NewDataset, response: Response) -> DatasetSummary:
    """Make a dataset without rows. One that is there already, and is as declared, is answered with 200."""
    declaration = rooms.workspace.declare_dataset(
        wanted.name, wanted.columns, wanted.primary_key, wanted.arm, wanted.partition_by or None
    )
    if declaration.existing is not None:
        response.status_code = HTTPStatus.OK
    return DatasetSummary.of(rooms.workspace.ensure_dataset(declaration))


@router.get(
    f"{NAME}/rows",
    summary="Read rows",
    dependencies=[READ],
    response_model=Page,
    responses={HTTPStatus.OK: {"content": STREAMS, "description": "A page of rows as JSON, or a stream of all rows."}},
)
def read_rows(
    rooms: Here,
    name: Name,
    column: Columns = None,
    where: Where = None,
    version: Version = None,
    since: Since = None,
    identity: Identity = False,
    arm: Arm = None,
    format: Format = None,
    limit: Annotated[int | None, Query(ge=1, description="rows of a page at most; of a page only")] = None,
    page: Annotated[str | None, Query(description="`next` of the page before; of a page only")] = None,
    accept: Accept = None,
) -> Response:
    """Read the rows of one version: as a stream of all of them (Arrow, NDJSON, CSV), or by pages, as JSON.

    The header `Lakeward-Version` says which version they are of. A stream that breaks off has no proper end.
    """
    dataset = rooms.workspace.dataset(name)
    representation = chosen(format, ",".join(accept or []))
    if representation is None:
        if arm is not None:
            raise UsageError("a page can't be read from an arm of one's choice", next_step="read a stream", arm=arm)
        most = min(limit or rooms.page_rows, rooms.page_rows)
        cursor = Cursor.read(page, version) if page is not None else Cursor(version, None)
        found = page_of(dataset, cursor, most, columns=column, where=where, since=since, identity=identity)
        return Response(found, media_type="application/json")
    if limit is not None or page is not None:
        raise UsageError("limit and page are for JSON", safe="nothing was changed", next_step=f"format={PAGE}")
    rooms.streams.check()
    if version == 0:
        # Before the first one there were no rows; their columns are known.
        none = dataset.preview(0, where, None, identity, since, columns=column)
        return streamed(dataset, none.to_reader(), representation, 0)
    pinned, reader = of_version(
        dataset, version, lambda wanted: dataset.read(column, where, wanted, since, identity, arm)
    )
    return streamed(dataset, reader, representation, pinned)


@router.post(
    f"{NAME}/rows",
    summary="Write rows",
    dependencies=[needs("dataset.write", of="name")],
    openapi_extra=BODY,
)
async def write_rows(
    rooms: Here,
    name: Name,
    request: Request,
    mode: Annotated[str, Query(description=f"how: {', '.join(VERBS)}")] = "append",
    allow_empty: AllowEmpty = False,
    content_type: ContentType = "",
    idempotency_key: IdempotencyKey = None,
) -> Written:
    """Write rows, atomically: all of them become visible at once, or none.

    Columns are those of the dataset, by name. For `changes` there is a column `__op`, for `delete` only the key's.
    """
    if mode not in VERBS:
        raise UsageError(f"unknown mode {mode!r}; there are {', '.join(VERBS)}", safe="nothing was changed", mode=mode)
    checked_headers(request)
    format = format_of(content_type)
    dataset = await run_in_threadpool(rooms.workspace.dataset, name)
    async with received(request, rooms.scratch) as path:
        writing = partial(
            write_file, dataset, path, format, mode, allow_empty=allow_empty, idempotency_key=idempotency_key
        )
        # They may wait for each other long; whoever reads does not wait for them.
        result = await run_sync(writing, limiter=rooms.writers)
    return Written.model_validate(result.to_json())


@router.get(
    f"{NAME}/changes",
    summary="Read what changed",
    dependencies=[READ],
    response_class=StreamingResponse,
    responses={HTTPStatus.OK: {"content": STREAMS, "description": "A stream of rows, `__op` first."}},
)
def read_changes(
    rooms: Here,
    name: Name,
    since: Annotated[int, Query(ge=0, le=LARGEST, description="the older version; 0: before the first")],
    version: Version = None,
    column: Columns = None,
    before: Annotated[bool, Query(description="also the old image of each row that was updated")] = True,
    identity: Identity = False,
    format: Format = None,
    accept: Accept = None,
) -> Response:
    """Read what became of the rows between two versions, as a stream: `insert`, `update`, `before`, `delete`."""
    dataset = rooms.workspace.dataset(name)
    representation = chosen(format, ",".join(accept or [])) or REPRESENTATIONS["ndjson"]
    rooms.streams.check()
    newest, reader = of_version(
        dataset, version, lambda wanted: dataset.changes(since, wanted, column, before, identity)
    )
    return streamed(dataset, reader, representation, newest)


@router.get(f"{NAME}/history", summary="Read the history", dependencies=[READ])
def read_history(
    rooms: Here,
    name: Name,
    most: Annotated[int, Query(ge=1, le=10_000, description="at most so many")] = 100,
    idle: Annotated[bool, Query(description="also those that had nothing to write")] = False,
    page: Before = None,
) -> TransactionPage:
    """The transactions of a dataset, newest first."""
    found = rooms.workspace.dataset(name).history(most + 1, idle, page)
    shown, following = cut(found, most, lambda each: each.id)
    return TransactionPage(transactions=[Transaction.of(each) for each in shown], next=following)


@router.get(f"{NAME}/digest", summary="Compute the checksum", dependencies=[READ])
def read_digest(rooms: Here, name: Name, arm: Arm = None, version: Version = None) -> Digest:
    """Compute the checksum of a version from the rows of an arm."""
    dataset = rooms.workspace.dataset(name)
    if version == 0:
        pinned, digest = 0, EMPTY
    else:
        pinned, digest = of_version(dataset, version, lambda wanted: dataset.digest(arm, wanted))
    return Digest(dataset=dataset.name, version=pinned, arm=arm or dataset.arm, digest=str(digest), rows=digest.count)


@router.get(NAME, summary="Show a dataset", dependencies=[READ])
def show_dataset(rooms: Here, name: Name) -> DatasetSummary:
    """Its columns, key, and where it stands."""
    return DatasetSummary.of(rooms.workspace.dataset(name))
