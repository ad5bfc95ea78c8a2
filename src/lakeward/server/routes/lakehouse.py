"""What a platform of another language needs of a runner for Iceberg: tables by namespace and name, rows in and out."""

from __future__ import annotations

import json
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Annotated

from anyio.to_thread import run_sync
from fastapi import Query, Request, Response

from lakeward.access.guard import require
from lakeward.control.identifiers import TableIdentifier
from lakeward.errors import UnknownObject, UsageError
from lakeward.server.bodies import AllowEmpty, ContentType, IdempotencyKey, checked_headers, format_of, received
from lakeward.server.incoming import columns_of, write_file
from lakeward.server.lakehouse_documents import (
    Committed,
    Fresh,
    Ingested,
    Moved,
    MoveOrder,
    Registered,
    Registration,
    place_of,
)
from lakeward.server.pages import LARGEST
from lakeward.server.representations import REPRESENTATIONS, STREAMS, chosen
from lakeward.server.rooms import Here
from lakeward.server.routes.datasets import (
    BODY,
    Accept,
    Columns,
    Identity,
    Since,
    Version,
    Where,
)
from lakeward.server.routing import noun
from lakeward.server.row_answers import of_version, streamed
from lakeward.server.rules import needs
from lakeward.storage.verbs import VERBS, verb_named
from lakeward.types.schema import OP, Schema
from lakeward.wiring.lakehouse import Declared, Lakehouse, table_at
from lakeward.wiring.workspace import Workspace

PREFIX = "/lakehouse"

router = noun("lakehouse")

Namespace = Annotated[
    list[str],
    Query(
        description="a level of the table's namespace, the outermost first; or all of them, with U+001F between them",
        examples=[["erp", "emea", "north"]],
    ),
]
Table = Annotated[str, Query(min_length=1, description="the table's name in its namespace", examples=["orders"])]


@router.post(
    "/ingest",
    summary="Write rows to a table, which is made if there is none",
    openapi_extra=BODY,
    dependencies=[needs("dataset.write", anywhere=True)],
)
async def ingest(
    rooms: Here,
    namespace: Namespace,
    table: Table,
    request: Request,
    mode: Annotated[str, Query(description=f"how: {', '.join(VERBS)}")] = "append",
    key: Annotated[list[str] | None, Query(description="a column of its primary key; none: as it is")] = None,
    columns: Annotated[
        str | None,
        Query(
            description="a JSON object: the type of each column, in order; none: as the table, or as the rows say",
            examples=['{"id": "long", "note": "string"}'],
        ),
    ] = None,
    partition: Annotated[
        list[str] | None, Query(description="a part of how a new table is partitioned", examples=[["day(ts)"]])
    ] = None,
    dataset: Annotated[str | None, Query(description="what a new dataset is called; none: as the table")] = None,
    create: Annotated[bool, Query(description="make the table if there is none")] = True,
    allow_empty: AllowEmpty = False,
    content_type: ContentType = "",
    idempotency_key: IdempotencyKey = None,
) -> Ingested:
    """Write rows, atomically, and answer with the commit.

    A table that is missing is made where the request says, native on Iceberg, its types those of `columns`, or else of
    the Arrow or Parquet schema; of JSON and CSV all rows are looked at. Without an answer, the request is repeated with
    its key: then it is told what the first one did, or does it.
    """
    verb_named(mode)
    checked_headers(request)
    format = format_of(content_type)
    declared = Declared(_columns(columns), key, partition, dataset)
    where = table_at(namespace, table)
    async with received(request, rooms.scratch) as path:
        writing = partial(
            _ingest, rooms.workspace, where, path, format, mode, declared, create, allow_empty, idempotency_key
        )
        return await run_sync(writing, limiter=rooms.writers)


def _ingest(
    workspace: Workspace,
    where: TableIdentifier,
    path: Path,
    format: str,
    mode: str,
    declared: Declared,
    create: bool,
    allow_empty: bool,
    idempotency_key: str | None,
) -> Ingested:
    lakehouse, verb = Lakehouse(workspace), verb_named(mode)
    dataset = lakehouse.find(where)
    if dataset is not None:
        lakehouse.check(dataset, declared)
    elif verb.removes or not create:
        dataset = lakehouse.get(where)
    else:
        found = declared.columns or columns_of(path, format)
        columns = {name: type_ for name, type_ in found.items() if not (verb.per_row and name == OP)}
        verb.check(Schema.declare(columns, declared.primary_key or (), str(where)), str(where))
        dataset = lakehouse.ensure(where, declared, columns)
    record = dataset.record
    require("dataset.write", record.slugs, record.name)
    result = write_file(dataset, path, format, mode, allow_empty=allow_empty, idempotency_key=idempotency_key)
    return Ingested.of(dataset, result, lakehouse.commit(dataset, result.version))


@router.get(
    "/read",
    summary="Read a table's rows as a stream",
    response_class=Response,
    responses={HTTPStatus.OK: {"content": STREAMS, "description": "All rows, Arrow unless another is asked for."}},
    dependencies=[needs("dataset.read", anywhere=True)],
)
def read(
    rooms: Here,
    namespace: Namespace,
    table: Table,
    column: Columns = None,
    where: Where = None,
    version: Version = None,
    snapshot: Annotated[
        int | None, Query(ge=0, le=LARGEST, description="the table as it was at this Iceberg snapshot; or `version`")
    ] = None,
    since: Since = None,
    identity: Identity = False,
    format: Annotated[
        str | None, Query(description=f"how rows are sent: {', '.join(REPRESENTATIONS)}; none: as Accept says")
    ] = None,
    accept: Accept = None,
) -> Response:
    """Read rows of one version, from whichever arm serves it; a stream that breaks off has no proper end.

    The header `Lakeward-Version` says which that is.
    """
    lakehouse = Lakehouse(rooms.workspace)
    dataset = lakehouse.get(table_at(namespace, table))
    record = dataset.record
    require("dataset.read", record.slugs, record.name)
    if format is not None and format not in REPRESENTATIONS:
        raise UnknownObject.among("format", format, REPRESENTATIONS, format=format)
    representation = chosen(format, ",".join(accept or [])) or REPRESENTATIONS["arrow"]
    if snapshot is not None:
        if version is not None:
            raise UsageError("version and snapshot are two ways to say one thing", next_step="give one of them")
        version = lakehouse.version_of(dataset, snapshot)
    if version == 0 or not (version or dataset.version):
        none = dataset.preview(0, where, None, identity, since, columns=column)
        return streamed(dataset, none.to_reader(), representation, 0)
    pinned, reader = of_version(dataset, version, lambda wanted: dataset.read(column, where, wanted, since, identity))
    return streamed(dataset, reader, representation, pinned)


@router.get(
    "/freshness",
    summary="Which version has been committed to a table?",
    dependencies=[needs("dataset.read", anywhere=True)],
)
def freshness(
    rooms: Here,
    namespace: Namespace,
    table: Table,
    arm: Annotated[str, Query(description="of which arm: iceberg or postgres")] = "iceberg",
) -> Fresh:
    """Tell the newest committed version of an arm, by the ledger: no row and no catalog is looked at."""
    lakehouse = Lakehouse(rooms.workspace)
    dataset = lakehouse.get(table_at(namespace, table))
    record = dataset.record
    require("dataset.read", record.slugs, record.name)
    return Fresh.of(dataset, lakehouse.freshness(dataset, arm))


@router.post(
    "/register",
    summary="Take a table that is in the catalog already",
    dependencies=[needs("dataset.create", anywhere=True)],
)
def register(rooms: Here, wanted: Registration) -> Registered:
    """Bring a table that another engine wrote under a dataset, without copying: its snapshot is version 1.

    It stays where it is. Its files have to be in the warehouse. Repeated, it changes nothing.
    """
    lakehouse = Lakehouse(rooms.workspace)
    table = table_at(wanted.namespace, wanted.table)
    plan = lakehouse.plan_registration(table, wanted.dataset, wanted.primary_key, add_identity=wanted.add_identity)
    told = {"repeated": plan.taken, "dry_run": wanted.dry_run, "actions": plan.actions()}
    if wanted.dry_run:
        place = {"namespace": list(table.namespace), "table": table.name, "dataset": plan.name}
        return Registered(**{**Committed.facts(None), "version": 0, **place, **told})
    result = lakehouse.register(plan)
    dataset = lakehouse.get(table)
    commit = lakehouse.commit(dataset, result.version)
    return Registered(**{**Committed.facts(commit), "version": result.version, **place_of(dataset), **told})


@router.post(
    "/move-namespace",
    summary="Call a table otherwise in the catalog",
    dependencies=[needs("move.read", anywhere=True)],
)
def move_namespace(rooms: Here, wanted: MoveOrder) -> Moved:
    """Give a table another name or namespace. No file is touched, readers go on, and writers wait for it.

    From then on it belongs there. By its old name it is still found here, so that whoever writes to that writes to it.
    A move that was cut short is finished by repeating it, or by recovery.
    """
    lakehouse = Lakehouse(rooms.workspace)
    dataset = lakehouse.get(table_at(wanted.namespace, wanted.table))
    record = dataset.record
    require("move.read" if wanted.dry_run else "move.run", record.slugs, record.name)
    if wanted.undo and wanted.to is not None:
        raise UsageError("undo says itself where to", safe="nothing was changed", next_step="leave `to` out")
    to = None if wanted.to is None else table_at(wanted.to.namespace, wanted.to.table or record.identifier.name)
    planned = lakehouse.plan_move(dataset, to, undo=wanted.undo)
    actions = [planned.explain()] if planned is not None else []
    if wanted.dry_run:
        return Moved(**place_of(dataset), moved=False, way=None, dry_run=True, actions=actions)
    outcome = lakehouse.move(dataset, to, undo=wanted.undo)
    moved = outcome.outcome == "moved"
    return Moved(**place_of(dataset), moved=moved, way=outcome.way, dry_run=False, actions=actions)


def _columns(text: str | None) -> dict[str, str] | None:
    """Return the columns that a parameter declares."""
    if text is None:
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict) or not all(isinstance(each, str) for each in found.values()):
        raise UsageError(
            "columns is no JSON object of type names",
            safe="nothing was changed",
            next_step='write {"id": "long", "note": "string"}',
        )
    return found
