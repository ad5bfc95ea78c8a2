"""Sources: databases and files outside, whose tables are synced into datasets."""

from __future__ import annotations

from http import HTTPStatus
from typing import Annotated

from fastapi import Body, Path, Response
from fastapi.responses import JSONResponse

from lakeward.access.guard import may
from lakeward.control.sources import SourceRecord
from lakeward.errors import NotAllowed
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.sources import NewSource, Source, SourceList, SourceTables, Synced, SyncWanted
from lakeward.server.queueing import ACCEPTED, queued, waited
from lakeward.server.rooms import Here, Rooms
from lakeward.server.routing import noun
from lakeward.server.rules import needs
from lakeward.wiring.sync_modes import sync_mode
from lakeward.wiring.sync_plan import SyncRequest

router = noun("sources")

SourceName = Annotated[str, Path(description="of the source", examples=["shop"])]

READ = needs("source.read")


@router.get("/sources", summary="List sources", dependencies=[READ])
def list_sources(rooms: Here) -> SourceList:
    """Every source, with the references by which it is reached, and the tables that are synced."""
    return SourceList(sources=[_told(each) for each in rooms.workspace.sources.all()])


@router.post("/sources", summary="Add a source", status_code=HTTPStatus.CREATED, dependencies=[needs("source.add")])
def add_source(rooms: Here, wanted: NewSource) -> Source:
    """Make a database or files known. It has to answer, and every column of the tables that are named to have a type.

    It is reached from the server. So where no settings `sources.allowed_*` say what may be, only an admin may.
    """
    _check_reach(rooms)
    with waited(rooms):
        return _told(rooms.workspace.sources.add(wanted.name, wanted.type, wanted.options, wanted.tables))


@router.get("/sources/{source}", summary="Show a source", dependencies=[READ])
def show_source(rooms: Here, source: SourceName) -> Source:
    """By what it is reached, and which tables are synced."""
    return _told(rooms.workspace.sources.find(source))


@router.delete(
    "/sources/{source}",
    summary="Remove a source",
    dependencies=[needs("source.remove")],
    status_code=HTTPStatus.NO_CONTENT,
    response_class=Response,
)
def remove_source(rooms: Here, source: SourceName) -> None:
    """Forget a source. Its datasets stay, and go on where they were if it is added again by the same name."""
    rooms.workspace.sources.remove(source)


@router.get("/sources/{source}/tables", summary="Ask for a source's tables", dependencies=[needs("source.sync")])
def list_source_tables(rooms: Here, source: SourceName) -> SourceTables:
    """Ask a source for its tables: keys, rows as it believes, columns with their types here, and what is refused."""
    with waited(rooms):
        found = rooms.workspace.sources.tables(source)
    tables = [
        {
            "table": each.full_name,
            "rows": each.rows,
            "primary_key": list(each.primary_key),
            "followed": each.followed,
            "columns": [
                {"name": one.name, "native": one.native, "type": _text(one.type), "refused": one.refused}
                for one in each.columns
            ],
            "about": about,
        }
        for each, about in found
    ]
    return SourceTables.plain(source=source, tables=tables)


@router.post(
    "/sources/{source}/sync",
    summary="Sync a source",
    dependencies=[needs("source.sync")],
    response_model=Synced | DryRun,
    responses=ACCEPTED,
)
def sync_source(
    rooms: Here, source: SourceName, wanted: Annotated[SyncWanted, Body(default_factory=SyncWanted)]
) -> Synced | DryRun | JSONResponse:
    """Bring tables into datasets, all at once or none."""
    sync_mode(wanted.mode)
    given = {"source": source, **wanted.model_dump(exclude={"dry_run", "wait"})}
    if not wanted.dry_run and not wanted.wait:
        return queued(rooms, "sync", given)
    request = SyncRequest(**given)
    with waited(rooms):
        if wanted.dry_run:
            plans = rooms.workspace.sources.plan_sync(request)
            return DryRun(actions=[action for each in plans for action in each.actions()])
        synced = rooms.workspace.sources.sync(request)
    return Synced.plain(source=source, datasets=[each.to_json() for each in synced])


def _check_reach(rooms: Rooms) -> None:
    """Refuse to reach out from here for somebody who could not do so without us.

    Raises:
        NotAllowed: nothing says what may be reached, and whoever asks may not do all.
    """
    said = rooms.workspace.settings.values.sources
    if None in (said.allowed_hosts, said.allowed_paths, said.allowed_references) and not may("code.run"):
        raise NotAllowed(
            "no setting says what sources may reach from the server, so that only an admin may add one",
            safe="nothing was changed",
            next_step="set sources.allowed_hosts, sources.allowed_paths and sources.allowed_references",
        )


def _told(record: SourceRecord) -> Source:
    return Source.plain(**{**vars(record), "tables": list(record.tables)})


def _text(type_: object) -> str | None:
    return None if type_ is None else str(type_)
