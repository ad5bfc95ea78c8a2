"""The audit log."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field

from lakeward.server.documents.document import Document, example

LINE: dict[str, Any] = {
    "at": "2026-12-01T06:00:00+00:00",
    "actor": "ana",
    "action": "dataset.rename",
    "subject": "main.sales.orders",
    "before": {"name": "orders"},
    "after": {"name": "orders_of_2026"},
}


class AuditLine(Document):
    """Who changed what."""

    model_config = example(**LINE)

    at: datetime
    actor: str
    action: str
    subject: str = Field(description="what it was done to, by its name then")
    before: Any
    after: Any


class AuditLog(Document):
    """Lines of the log, newest first."""

    model_config = example(lines=[LINE])

    lines: list[AuditLine]
