"""Flags of writers and readers."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import Field

from lakeward.server.documents.document import Document, Explained, example

FLAG: dict[str, Any] = {
    "kind": "writer",
    "name": "pipeline.output",
    "value": "pg",
    "source": "default",
    "dataset": None,
    "about": "outputs of pipelines",
    "ceiling": "iceberg_native",
    "set_by": None,
    "set_at": None,
}


class Flag(Document):
    """A flag as it is in force."""

    model_config = example(**FLAG)

    kind: str = Field(description="writer or reader")
    name: str
    value: str = Field(description="the mode of what a writer makes, or what a reader prefers")
    source: str = Field(description="default, flag or dataset")
    dataset: str | None = Field(description="the dataset that it is for; null: all")
    about: str
    ceiling: str | None = Field(description="the highest mode that a writer may write to")
    set_by: str | None
    set_at: datetime | None


class FlagList(Document):
    """Every writer and reader."""

    model_config = example(flags=[FLAG])

    flags: list[Flag]


class FlagClear(Explained):
    """Which flag is taken back."""

    model_config = example(kind="reader", name="api.read", dataset="main.sales.orders")

    kind: Literal["writer", "reader"]
    name: str = Field(description="of the writer or reader")
    dataset: str | None = Field(None, description="for this dataset only; null: for all")


class FlagSet(FlagClear):
    """Which flag is set, and how."""

    model_config = example(kind="reader", name="api.read", value="shadow", dataset="main.sales.orders")

    value: str = Field(
        description="of a writer: pg, dual, iceberg_dual, iceberg_native; a reader: primary, postgres, iceberg, shadow"
    )


class FlagChanged(Document):
    """Whether anything changed."""

    model_config = example(changed=True)

    changed: bool
