"""Datasets: where they stand, what is expected of them, what they are made from; renamed, dropped, brought back."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from fastapi import Body, Query

from lakeward.errors import UnknownObject
from lakeward.server import tree_acts
from lakeward.server.documents.document import DryRun
from lakeward.server.documents.tree import (
    Back,
    Drop,
    Dropped,
    Expect,
    Expectations,
    Expected,
    Lineage,
    ListedPage,
    Named,
    Overview,
    Quality,
    Rename,
    Standing,
    Undrop,
)
from lakeward.server.name_pages import After, Limit
from lakeward.server.pages import LARGEST
from lakeward.server.rooms import Here
from lakeward.server.routing import NAME, Name, noun
from lakeward.server.rules import needs

router = noun("datasets")

READ = needs("dataset.read", of="name")


class Direction(StrEnum):
    """Of lineage."""

    up = "up"
    down = "down"


@router.get("/status", summary="Show where datasets stand", dependencies=[needs("dataset.read", anywhere=True)])
def show_status(rooms: Here) -> Overview:
    """Version, rows, the arms that hold it, and how far mirrors are behind, of every dataset."""
    return Overview(datasets=[Standing.of(each) for each in rooms.workspace.status()])


@router.get(f"{NAME}/status", summary="Show where a dataset stands", dependencies=[READ])
def show_dataset_status(rooms: Here, name: Name) -> Standing:
    """The arms that hold its newest version, how far its mirror is behind, and where its Iceberg table is."""
    return Standing.of(rooms.workspace.dataset(name).status())


@router.get(f"{NAME}/lineage", summary="Follow columns", dependencies=[READ])
def read_lineage(
    rooms: Here,
    name: Name,
    column: Annotated[list[str] | None, Query(description="which columns; none: all")] = None,
    direction: Annotated[
        Direction, Query(description="up: what they are made from; down: what is made from them")
    ] = Direction.up,
) -> Lineage:
    """Follow the columns of a dataset through the applied pipelines."""
    dataset, found = rooms.workspace.dataset(name).name, rooms.workspace.pipelines.lineage()
    known = found.columns(dataset)
    for each in column or ():
        if each not in known:
            raise UnknownObject.among(f"column of dataset {dataset}", each, known, dataset=dataset, column=each)
    follow = found.down if direction is Direction.down else found.up
    trees = [follow(dataset, each).to_json() for each in column or known]
    return Lineage.plain(dataset=dataset, direction=direction.value, columns=trees)


@router.get(f"{NAME}/expectations", summary="Show what is expected", dependencies=[READ])
def read_expectations(rooms: Here, name: Name) -> Expectations:
    """What is expected of every version, whoever writes it. What pipelines expect of their outputs comes on top."""
    dataset = rooms.workspace.dataset(name)
    return Expectations.plain(dataset=dataset.name, expectations=dataset.expected())


@router.post(f"{NAME}/expect", summary="Expect something", dependencies=[needs("dataset.expect", of="name")])
def expect(rooms: Here, name: Name, wanted: Expect) -> Expected | DryRun:
    """Declare what a dataset's rows have to be. Every later version is judged before anybody sees it."""
    dataset = rooms.workspace.dataset(name)
    made = dataset.expect(wanted.expectations, wanted.dry_run)
    if wanted.dry_run:
        actions = [f"expect of {dataset.name}: {each}" for each in made.expectations]
        nothing = [f"expect nothing of {dataset.name} any more"]
        return DryRun(actions=(actions or nothing) if made.changed else [], warnings=list(made.warnings))
    return Expected.plain(dataset=dataset.name, **{**vars(made), "warnings": list(made.warnings)})


@router.get(f"{NAME}/quality", summary="Show what was found", dependencies=[READ])
def read_quality(
    rooms: Here,
    name: Name,
    version: Annotated[int | None, Query(ge=1, le=LARGEST, description="of this version only")] = None,
    most: Annotated[int, Query(ge=1, le=1000, description="so many versions at most")] = 20,
) -> Quality:
    """What was expected of versions, and what was found, newest first; those that were refused are among them."""
    dataset = rooms.workspace.dataset(name)
    found = dataset.expectations(version, most)
    return Quality.plain(dataset=dataset.name, versions=[each.to_json() for each in found])


@router.get("/dropped", summary="List dropped datasets", dependencies=[needs("dataset.read", anywhere=True)])
def list_dropped_datasets(rooms: Here, limit: Limit = 100, page: After = None) -> ListedPage:
    """Datasets that were dropped and can come back, with when and by whom, and until when."""
    return tree_acts.listed(rooms, "dataset", dropped=True, limit=limit, page=page)


@router.post(f"{NAME}/rename", summary="Rename a dataset", dependencies=[needs("dataset.rename", of="name")])
def rename_dataset(rooms: Here, name: Name, wanted: Rename) -> Named | DryRun:
    """Give it another name in its schema. Its slug stays, and with it its table, files, history, flags and flip."""
    return tree_acts.rename(rooms, "dataset", name, wanted)


@router.post(f"{NAME}/drop", summary="Drop a dataset", dependencies=[needs("dataset.drop", anywhere=True)])
def drop_dataset(rooms: Here, name: Name, wanted: Annotated[Drop, Body(default_factory=Drop)]) -> Dropped | DryRun:
    """Drop it, so that it can come back for some days. `confirm` names it."""
    return tree_acts.drop(rooms, "dataset", name, wanted)


@router.post(f"{NAME}/undrop", summary="Bring a dataset back", dependencies=[needs("dataset.undrop", anywhere=True)])
def undrop_dataset(rooms: Here, name: Name, wanted: Annotated[Undrop, Body(default_factory=Undrop)]) -> Back | DryRun:
    """Bring it back exactly as it was, with its schema and catalog, if they are dropped."""
    return tree_acts.undrop(rooms, "dataset", name, wanted)
