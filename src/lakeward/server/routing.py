"""How the routes of a noun are declared: what all of them have in common."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path

from lakeward.server.problems import Problem
from lakeward.server.rooms import known_parameters

PREFIX = "/api/v1"

NAME = r"/datasets/{name:path}"

Name = Annotated[
    str, Path(description="catalog.schema.dataset", examples=["main.sales.orders"], json_schema_extra={"minLength": 1})
]

PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": Problem, "description": "What was asked for can't be done; nothing was changed."},
    "5XX": {"model": Problem, "description": "The server or its stores can't answer now."},
}


def noun(name: str) -> APIRouter:
    """Return the router of the routes below `/api/v1` that are about one noun."""
    return APIRouter(tags=[name], responses=PROBLEMS, dependencies=[Depends(known_parameters)])
