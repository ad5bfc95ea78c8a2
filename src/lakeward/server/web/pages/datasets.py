"""All datasets: the tree of catalogs and schemas, and those in it that are searched for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from fastapi import APIRouter, Request, Response

from lakeward.control.glance import Glance, Glances
from lakeward.control.names import full_name
from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.navigation import Place
from lakeward.server.web.page import page
from lakeward.server.web.paging import Number, paged
from lakeward.server.web.standing import COLOURS, MEANINGS, chosen, states

PLACE = Place("Datasets", "/datasets", 20, "dataset.read", ("/edit",))
ROWS = 100

router = APIRouter()


@router.get("/datasets", dependencies=[needs("dataset.read", anywhere=True)])
def datasets(
    request: Request, rooms: Here, q: str = "", state: str = "", within: str = "", number: Number = None
) -> Response:
    """List datasets by name."""
    workspace = rooms.workspace
    glances = Glances(workspace.database, workspace.tree.workspace).all()
    wanted = state if state in COLOURS else None
    return page(
        request,
        "datasets.html",
        part="standing",
        tree=_tree(glances),
        total=len(glances),
        colours=COLOURS,
        meanings=MEANINGS,
        states=states,
        found=paged(chosen(glances, q, wanted, within or None), number, ROWS),
        q=q,
        state=wanted,
        within=within,
        base="/datasets",
    )


Level = tuple[str, str, int]
"""The name of a catalog or schema, its full name, and how many datasets are in it."""


def _tree(glances: Sequence[Glance]) -> list[tuple[Level, list[Level]]]:
    counts = Counter(each.path[:2] for each in glances)
    catalogs = Counter(each.path[0] for each in glances)
    return [
        (
            (catalog, full_name((catalog,)), count),
            [(path[1], full_name(path), inside) for path, inside in sorted(counts.items()) if path[0] == catalog],
        )
        for catalog, count in sorted(catalogs.items())
    ]
