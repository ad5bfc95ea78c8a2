"""The page of one dataset: a tab for each thing that there is to know of it."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Depends, Request, Response

from lakeward.access.guard import may
from lakeward.errors import LakewardError
from lakeward.server.problems import status_of
from lakeward.server.rooms import Here
from lakeward.server.rules import needs
from lakeward.server.web.dataset_tabs import TABS, Asked
from lakeward.server.web.messages import Said
from lakeward.server.web.page import page
from lakeward.server.web.paging import Number
from lakeward.server.web.words import address, in_path
from lakeward.wiring.dataset import Dataset
from lakeward.wiring.editing import Limits

router = APIRouter()


def _asked(
    where: str = "",
    version: Number = None,
    after: Number = None,
    trail: str = "",
    identity: bool = False,
    since: Number = None,
    column: str = "",
    most: Number = None,
) -> Asked:
    return Asked(where.strip(), version or None, after, trail, identity, since, column, min(most or 50, 5_000))


@dataclass(frozen=True)
class Head:
    """What stands above every tab."""

    name: str
    tabs: list[tuple[str, str, str, int | None]]
    editable: bool


@router.get("/datasets/{name:path}", dependencies=[needs("dataset.read", of="name")])
def dataset(
    request: Request, rooms: Here, name: str, asked: Annotated[Asked, Depends(_asked)], tab: str = "rows"
) -> Response:
    """Show a dataset."""
    found = rooms.workspace.dataset(name)
    shown = TABS[tab if tab in TABS else "rows"]
    record = found.record
    values: dict[str, object]
    status, problem = HTTPStatus.OK, None
    try:
        values = shown.values(rooms.workspace, found, asked, str(request.base_url).rstrip("/"))
    except LakewardError as error:
        if shown.part is not None and request.headers.get("hx-target") == shown.part:
            # The rows that are shown stay, and the message has its place above.
            raise
        # What was asked for stays in its fields, to be mended.
        values, problem, status = {}, Said.of(error), status_of(error)
    return page(
        request,
        f"dataset_{shown.name}.html",
        part=shown.part,
        status=status,
        head=Head(record.name, _tabs(found, asked), _editable(found)),
        record=record,
        standing=found.status(),
        asked=asked,
        tab=shown.name,
        here=address(f"/datasets/{in_path(record.name)}", tab=shown.name),
        problem=problem,
        **values,
    )


def _tabs(dataset: Dataset, asked: Asked) -> list[tuple[str, str, str, int | None]]:
    base = f"/datasets/{in_path(dataset.name)}"
    return [
        (each.name, each.title, address(base, tab=each.name, version=asked.version if each.of_version else None), None)
        for each in TABS.values()
    ]


def _editable(dataset: Dataset) -> bool:
    record = dataset.record
    return record.row_count <= Limits().rows and may("dataset.write", record.slugs)
