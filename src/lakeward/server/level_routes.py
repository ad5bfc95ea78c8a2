"""The routes of a level of the tree above datasets: its objects are made, listed, renamed, dropped and brought back."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Body, Path, Query

from lakeward.server import tree_acts
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.tree import Back, DropAll, Dropped, ListedPage, Named, NewName, Rename, Undrop
from lakeward.server.name_pages import After, Limit
from lakeward.server.rooms import Here
from lakeward.server.routing import noun
from lakeward.server.rules import needs

Name = Annotated[str, Path(description="its full name", examples=["main", "main.sales"])]
WithDropped = Annotated[bool, Query(description="those that were dropped and can come back")]


def level_routes(level: str) -> APIRouter:
    """Return the routes of a level.

    Args:
        level: `catalog` or `schema`.
    """
    router = noun(f"{level}s")
    all_, one = f"/{level}s", f"/{level}s/{{name:path}}"

    @router.get(
        all_, name=f"list_{level}s", summary=f"List {level}s", dependencies=[needs("dataset.read", anywhere=True)]
    )
    def found(rooms: Here, dropped: WithDropped = False, limit: Limit = 100, page: After = None) -> ListedPage:
        """By name, with what is in them."""
        return tree_acts.listed(rooms, level, dropped=dropped, limit=limit, page=page)

    @router.post(
        all_, name=f"create_{level}", summary=f"Make a {level}", dependencies=[needs(f"{level}.create", anywhere=True)]
    )
    def create(rooms: Here, wanted: NewName) -> Named:
        """Make one. One of that name is left alone, and answered with."""
        workspace = rooms.workspace
        return tree_acts.named(
            (workspace.create_catalog if level == "catalog" else workspace.create_schema)(wanted.name)
        )

    @router.post(
        f"{one}/rename",
        name=f"rename_{level}",
        summary=f"Rename a {level}",
        dependencies=[needs(f"{level}.rename", anywhere=True)],
    )
    def rename(rooms: Here, name: Name, wanted: Rename) -> Named | DryRun:
        """Give it another name. Its slug stays, and with it every table and file."""
        return tree_acts.rename(rooms, level, name, wanted)

    @router.post(
        f"{one}/drop",
        name=f"drop_{level}",
        summary=f"Drop a {level}",
        dependencies=[needs(f"{level}.drop", anywhere=True)],
    )
    def drop(rooms: Here, name: Name, wanted: Annotated[DropAll, Body(default_factory=DropAll)]) -> Dropped | DryRun:
        """Drop it, so that it can come back for some days. `confirm` names it."""
        return tree_acts.drop(rooms, level, name, wanted, cascade=wanted.cascade)

    @router.post(
        f"{one}/undrop",
        name=f"undrop_{level}",
        summary=f"Bring a {level} back",
        dependencies=[needs(f"{level}.undrop", anywhere=True)],
    )
    def undrop(rooms: Here, name: Name, wanted: Annotated[Undrop, Body(default_factory=Undrop)]) -> Back | DryRun:
        """Bring back the last one of that name that was dropped, with what was dropped in the same step."""
        return tree_acts.undrop(rooms, level, name, wanted)

    return router
