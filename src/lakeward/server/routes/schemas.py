"""Schemas: made, listed, renamed, dropped and brought back."""

from __future__ import annotations

from typing import Annotated

from fastapi import Body, Path, Query

from lakeward.server import tree_acts
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.tree import Back, DropAll, Dropped, ListedPage, Named, NewName, Rename, Undrop
from lakeward.server.name_pages import After, Limit
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

router = noun("schemas")

NAME = "/schemas/{name:path}"

Name = Annotated[str, Path(description="its full name", examples=["main.sales"])]


@router.get("/schemas", summary="List schemas", dependencies=[needs("dataset.read", anywhere=True)])
def list_schemas(
    rooms: Here,
    dropped: Annotated[bool, Query(description="those that were dropped and can come back")] = False,
    limit: Limit = 100,
    page: After = None,
) -> ListedPage:
    """Schemas by name, with what is in them."""
    return tree_acts.listed(rooms, "schema", dropped=dropped, limit=limit, page=page)


@router.post("/schemas", summary="Make a schema", dependencies=[needs("schema.create", anywhere=True)])
def create_schema(rooms: Here, wanted: NewName) -> Named:
    """Make a schema. One of that name is left alone, and answered with."""
    return tree_acts.named(rooms.workspace.create_schema(wanted.name))


@router.post(f"{NAME}/rename", summary="Rename a schema", dependencies=[needs("schema.rename", anywhere=True)])
def rename_schema(rooms: Here, name: Name, wanted: Rename) -> Named | DryRun:
    """Give it another name. Its slug stays, and with it every table and file."""
    return tree_acts.rename(rooms, "schema", name, wanted)


@router.post(f"{NAME}/drop", summary="Drop a schema", dependencies=[needs("schema.drop", anywhere=True)])
def drop_schema(rooms: Here, name: Name, wanted: Annotated[DropAll, Body(default_factory=DropAll)]) -> Dropped | DryRun:
    """Drop it, so that it can come back for some days. `confirm` names it."""
    return tree_acts.drop(rooms, "schema", name, wanted, cascade=wanted.cascade)


@router.post(f"{NAME}/undrop", summary="Bring a schema back", dependencies=[needs("schema.undrop", anywhere=True)])
def undrop_schema(rooms: Here, name: Name, wanted: Annotated[Undrop, Body(default_factory=Undrop)]) -> Back | DryRun:
    """Bring back the last one of that name that was dropped, with what was dropped in the same step."""
    return tree_acts.undrop(rooms, "schema", name, wanted)
