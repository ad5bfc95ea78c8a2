"""Sources outside the workspace, and syncs of them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lakeward.server.documents.document import Document, Explained, Request, Waiting, example

SOURCE: dict[str, Any] = {
    "name": "shop",
    "type": "postgres",
    "options": {"url": "env:SHOP_URL"},
    "tables": ["public.orders"],
    "added_at": "2026-12-01T06:00:00+00:00",
    "added_by": "ana",
}
TABLE: dict[str, Any] = {
    "table": "public.orders",
    "rows": 1200,
    "primary_key": ["id"],
    "followed": True,
    "columns": [{"name": "id", "native": "bigint", "type": "long", "refused": None}],
    "about": "",
}


class Source(Document):
    """A source. Its options hold references to secrets, and never secrets."""

    model_config = example(**SOURCE)

    name: str
    type: str
    options: dict[str, Any]
    tables: list[str] = Field(description="those that are synced if none is named; none: every table")
    added_at: datetime
    added_by: str


class SourceList(Document):
    """Every source, by name."""

    model_config = example(sources=[SOURCE])

    sources: list[Source]


class NewSource(Request):
    """A source to add. It has to answer."""

    model_config = example(name="shop", type="postgres", options={"url": "env:SHOP_URL"}, tables=["public.orders"])

    name: str = Field(description="letters, digits, _ and -")
    type: str = Field(description="postgres, files, …")
    options: dict[str, Any] = Field(description="as the type has them; a secret is a reference, env:NAME or file:/path")
    tables: list[str] = Field([], description="those that are synced if none is named; none: every table")


class SourceTables(Document):
    """What a source has, by its own word."""

    model_config = example(source="shop", tables=[TABLE])

    source: str
    tables: list[dict[str, Any]]


class SyncWanted(Explained, Waiting):
    """What is synced, and how: see `lakeward source sync`."""

    model_config = example(tables=["public.orders"], mode="incremental", wait=True)

    tables: list[str] = Field([], description="none: those that it was added with, or all")
    mode: str = Field("full", description="full, incremental or append")
    into: str | None = Field(None, description="catalog.schema of the datasets; null: main and the source's name")
    key: list[str] = Field([], description="the primary key of a dataset that is made; none: the table's")
    text: list[str] = Field([], description="columns of a dataset that is made, read as the source prints them")
    arm: str | None = Field(None, description="of datasets that are made")
    allow_empty: bool = Field(False, description="let a table without rows empty its dataset")
    cursor: str | None = Field(None, description="a column whose values grow, by which new rows are found")
    lag: str | None = Field(None, description="how far a row's cursor may lie behind when it becomes visible")
    overwrite: bool = Field(False, description="let full take away what others have written")
    run: str | None = Field(None, description="a name: each table for itself, and those that it has done are left")


class Synced(Document):
    """What became of each table."""

    model_config = example(source="shop", datasets=[{"table": "public.orders", "rows_read": 1200}])

    source: str
    datasets: list[dict[str, Any]]
