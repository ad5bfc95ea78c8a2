"""Moves of Iceberg tables."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from lakeward.server.documents.document import Document, Explained, Waiting, example

MOVE: dict[str, Any] = {
    "dataset": "main.sales.orders",
    "from": ["datasets", "d1"],
    "to": ["main", "sales", "orders"],
}


class MovePlan(Document):
    """Which tables are not where the names of their datasets say."""

    model_config = example(moves=[MOVE], refused=[], skipped=[], at_home=12, left=0)

    moves: list[dict[str, Any]] = Field(description="what would be moved, in order")
    refused: list[dict[str, Any]] = Field(description="what can't be moved now, and why")
    skipped: list[dict[str, Any]] = Field(description="datasets without an Iceberg table")
    at_home: int
    left: int = Field(description="how many come after the limit")


class MoveStatus(Document):
    """Where tables are, and how many are in each namespace: before anything was moved, and now."""

    model_config = example(
        tables=[{"dataset": "main.sales.orders", "at_home": True}], namespaces={"main.sales": {"before": 0, "now": 1}}
    )

    tables: list[dict[str, Any]]
    namespaces: dict[str, dict[str, int]]


class MoveUndo(Explained, Waiting):
    """Whose moves are taken back."""

    model_config = example(names=["main.sales"], dry_run=True)

    names: list[str] = Field([], description="datasets, or schemas: catalog.schema; none: see `all`")
    all: bool = Field(False, description="every dataset")


class MoveApply(MoveUndo):
    """What is moved."""

    model_config = example(names=["main.sales"], limit=10, dry_run=True)

    limit: int | None = Field(None, ge=1, description="take up so many at most")


class Moved(Document):
    """What became of each table."""

    model_config = example(
        moved=1, done=0, skipped=0, failed=0, left=0, datasets=[{**MOVE, "outcome": "moved", "way": "rename"}]
    )

    datasets: list[dict[str, Any]]
