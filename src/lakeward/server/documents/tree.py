"""The tree of names: catalogs, schemas, and what datasets have in common with them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lakeward.server.documents.document import Destructive, Document, Explained, Request, example

NAMED: dict[str, Any] = {"name": "main.sales", "slug": "sales"}


class Listed(Document):
    """An object with what is in it."""

    model_config = example(name="main.sales", slug="sales", datasets=12, rows=48000)

    name: str


class ListedPage(Document):
    """Objects by name."""

    model_config = example(found=[{"name": "main.sales", "slug": "sales", "datasets": 12, "rows": 48000}], next=None)

    found: list[Listed]
    next: str | None = Field(description="the `page` that follows; null: there is none")


class Named(Document):
    """An object by its name, and its slug, which never changes."""

    model_config = example(**NAMED)

    name: str
    slug: str


class NewName(Request):
    """An object to make; one that is there is left alone."""

    model_config = example(name="main.sales")

    name: str = Field(min_length=1, description="its full name")


class Rename(Explained):
    """Another name."""

    model_config = example(to="orders_of_2026")

    to: str = Field(min_length=1, description="the new name of its own level, or its new full name")


class Drop(Destructive):
    """What is dropped. It can come back for some days."""

    model_config = example(confirm="main.sales.orders")


class DropAll(Drop):
    """What is dropped, and whether all that is in it goes with it."""

    model_config = example(confirm="main.sales", cascade=True)

    cascade: bool = Field(False, description="with all that is in it")


class Dropped(Document):
    """What was dropped, and until when it can come back."""

    model_config = example(
        name="main.sales.orders", dropped_at="2026-12-01T06:00:00Z", undo_until="2026-12-31T06:00:00Z"
    )

    name: str
    dropped_at: datetime
    undo_until: datetime


class Undrop(Explained):
    """How something comes back."""

    model_config = example(as_name=None)

    as_name: str | None = Field(None, description="another name for it, where its own is taken")


class Back(Document):
    """What is there again, its parents first."""

    model_config = example(back=[{"level": "dataset", "name": "main.sales.orders"}])

    back: list[dict[str, str]]


class Expectations(Document):
    """What is expected of every version of a dataset, whoever writes it."""

    model_config = example(dataset="main.sales.orders", expectations=["primary_key", {"row_count": {"min": 1}}])

    dataset: str
    expectations: list[Any]


class Expect(Explained):
    """What is to be expected; it takes the place of what was declared before. None: nothing."""

    model_config = example(expectations=["primary_key", {"not_null": ["amount"]}])

    expectations: list[Any] = Field(description="as `expectations` of an output in a pipeline")


class Expected(Document):
    """What is expected from now on."""

    model_config = example(dataset="main.sales.orders", expectations=["primary_key"], changed=True, warnings=[])

    dataset: str
    expectations: list[Any]
    changed: bool
    warnings: list[str]


class Quality(Document):
    """What was expected of versions, and what was found, newest first."""

    model_config = example(dataset="main.sales.orders", versions=[{"version": 3, "status": "committed", "results": []}])

    dataset: str
    versions: list[dict[str, Any]]


class Lineage(Document):
    """Of each column, what it is made from, or what is made from it."""

    model_config = example(
        dataset="main.analytics.orders",
        direction="up",
        columns=[{"dataset": "main.analytics.orders", "column": "total", "pipeline": "orders_daily", "links": []}],
    )

    dataset: str
    direction: str
    columns: list[dict[str, Any]]


class Standing(Document):
    """Where a dataset stands."""

    model_config = example(
        name="main.sales.orders",
        version=3,
        row_count=1200,
        arm="postgres",
        mode="dual",
        holders=["postgres", "iceberg"],
        status="current",
        behind=None,
        freshness={"postgres": 3, "iceberg": 3},
        table=None,
        at_home=True,
    )

    name: str
    version: int
    row_count: int
    arm: str
    mode: str
    holders: list[str] = Field(description="the arms that hold the newest version")
    status: str
    behind: dict[str, Any] | None = Field(description="how far its mirror is behind")
    freshness: dict[str, int | None] = Field(description="the newest version that each arm holds")
    table: dict[str, Any] | None = Field(description="where its Iceberg table is")
    at_home: bool


class Overview(Document):
    """Where every dataset stands."""

    model_config = example(datasets=[])

    datasets: list[Standing]
