"""Comparisons of the arms, and the differences that are accepted."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import AwareDatetime, Field

from lakeward.server.documents.document import Document, Request, Waiting, example

COMPARISON: dict[str, Any] = {
    "id": 9,
    "at": "2026-12-01T06:00:02+00:00",
    "version": 3,
    "kind": "full",
    "equal": True,
    "rows": 1200,
    "details": {},
}
RULE: dict[str, Any] = {
    "column": "note",
    "reason": "trailing spaces, mended by the source in May",
    "owner": "ana",
    "until": "2027-05-01T00:00:00+00:00",
    "expired": False,
}


class Comparison(Document):
    """What a comparison of the arms found."""

    model_config = example(**COMPARISON)

    id: int
    at: datetime
    version: int
    kind: str = Field(description="write: what a write changed; read: what a reader was given; full: all rows")
    equal: bool | None = Field(description="null: the arms could not be compared, and `details` says why")
    rows: int
    details: dict[str, Any]


class ComparisonPage(Document):
    """Comparisons, newest first."""

    model_config = example(dataset="main.sales.orders", comparisons=[COMPARISON], next=None)

    dataset: str
    comparisons: list[Comparison]
    next: int | None = Field(description="the `page` that follows; null: there is none")


class Verified(Document):
    """What every arm that holds a dataset's head has: the same."""

    model_config = example(
        dataset="main.sales.orders", version=3, equal=True, digests={"postgres": "1200:1f:2e"}, recorded=None
    )

    dataset: str
    version: int
    equal: bool
    digests: dict[str, str]
    recorded: str | None


class Recheck(Waiting):
    """Which mirrored datasets are compared anew."""

    model_config = example(datasets=["main.sales.orders"], older_than_seconds=604800)

    datasets: list[str] = Field([], description="none: all that are mirrored")
    older_than_seconds: float = Field(
        0, ge=0, allow_inf_nan=False, description="leave out those that were compared more recently"
    )


class Rechecked(Document):
    """What became of each dataset."""

    model_config = example(
        datasets=[{"dataset": "main.sales.orders", "outcome": "equal", "version": 3, "rows": 1200, "error": None}]
    )

    datasets: list[dict[str, Any]]


class Rule(Document):
    """Differences in a column that are accepted for a time."""

    model_config = example(**RULE)

    column: str | None = Field(description="null: the dataset has it no more")
    reason: str
    owner: str
    until: datetime
    expired: bool


class RuleList(Document):
    """The rules of a dataset, also those that have expired."""

    model_config = example(dataset="main.sales.orders", rules=[RULE])

    dataset: str
    rules: list[Rule]


class NewRule(Request):
    """A rule. One that the column has already is replaced."""

    model_config = example(column="note", reason=RULE["reason"], until=RULE["until"])

    column: str
    reason: str = Field(min_length=1)
    until: AwareDatetime = Field(description="when the differences count again")
    owner: str | None = Field(None, description="null: who asks")
