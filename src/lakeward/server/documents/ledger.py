"""The ledger: transactions, and what recovery did."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import Field

from lakeward.server.documents.document import Document, Explained, example

TRANSACTION: dict[str, Any] = {
    "id": 17,
    "dataset": "main.sales.orders",
    "version": 3,
    "parent_version": 2,
    "kind": "write",
    "verb": "upsert",
    "arm": "postgres",
    "status": "committed",
    "build_id": "6f2c8a51-7c59-4a5b-9d1b-0f9c54f0a6a1",
    "pipeline": "orders_daily",
    "writer": "pipeline.output",
    "opened_at": "2026-12-01T06:00:00+00:00",
    "committed_at": "2026-12-01T06:00:02+00:00",
    "published_at": "2026-12-01T06:00:02+00:00",
    "rows_in": 10,
    "rows_added": 4,
    "rows_updated": 5,
    "rows_unchanged": 1,
    "rows_deleted": 0,
    "rows_skipped": 0,
    "row_count": 1200,
    "owner": None,
    "error": None,
    "author": None,
    "readable": True,
}


class Transaction(Document):
    """A row of the ledger."""

    model_config = example(**TRANSACTION)

    id: int
    dataset: str
    version: int
    parent_version: int
    kind: str = Field(description="write, copy, adopt, …")
    verb: str
    arm: str
    status: str = Field(description="open, committed or aborted")
    build_id: UUID
    pipeline: str | None
    writer: str
    opened_at: datetime
    committed_at: datetime | None
    published_at: datetime | None
    rows_in: int | None
    rows_added: int | None
    rows_updated: int | None
    rows_unchanged: int | None
    rows_deleted: int | None
    rows_skipped: int | None
    row_count: int | None
    owner: str | None = Field(description="the process that writes it")
    error: str | None = Field(description="why it was aborted")
    author: str | None = Field(description="the person who edited the rows")
    readable: bool = Field(description="whether it is a version that can still be read")


class TransactionPage(Document):
    """Transactions, newest first."""

    model_config = example(transactions=[TRANSACTION], next=17)

    transactions: list[Transaction]
    next: int | None = Field(description="the `page` that follows; null: there is none")


class Recovery(Explained):
    """How it is recovered."""

    model_config = example(dry_run=True)


class Recovered(Document):
    """What recovery did."""

    model_config = example(recovered=[{"dataset": "main.sales.orders", "version": 4, "outcome": "aborted"}])

    recovered: list[dict[str, Any]]
