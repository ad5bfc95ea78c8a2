"""Datasets, their rows and what is told of them."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from lakeward.wiring.dataset import Dataset

EXAMPLE_COLUMNS: dict[str, JsonValue] = {"id": "long", "note": "string", "amount": "decimal(18,4)"}


class DatasetSummary(BaseModel):
    """A dataset, and where it stands."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "name": "main.sales.orders",
                "arm": "postgres",
                "mode": "pg",
                "version": 3,
                "row_count": 1200,
                "columns": EXAMPLE_COLUMNS,
                "primary_key": ["id"],
                "partition_by": [],
            }
        }
    )

    name: str
    arm: str = Field(description="the arm that serves it")
    mode: str = Field(description="its route: pg, dual, iceberg_dual or iceberg_native")
    version: int = Field(description="its newest committed version; 0 before the first")
    row_count: int
    columns: dict[str, str] = Field(description="the type of each column, in order")
    primary_key: list[str]
    partition_by: list[str]

    @classmethod
    def of(cls, dataset: Dataset) -> DatasetSummary:
        """Return it as it is now."""
        record = dataset.record
        return cls(
            name=record.name,
            arm=record.arm,
            mode=record.route.mode,
            version=record.head_version,
            row_count=record.row_count,
            columns={column.name: str(column.type) for column in record.schema.columns},
            primary_key=list(record.schema.primary_key),
            partition_by=list(record.partition_by),
        )


class DatasetList(BaseModel):
    """Every dataset, by name."""

    datasets: list[DatasetSummary]


class NewDataset(BaseModel):
    """A dataset to make; its catalog and schema are made where they are missing."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"name": "main.sales.orders", "columns": EXAMPLE_COLUMNS, "primary_key": ["id"]},
        },
    )

    name: str = Field(description="catalog.schema.dataset")
    columns: dict[str, str] = Field(description="the type of each column, in order")
    primary_key: list[str] = []
    arm: str | None = Field(None, description="postgres or iceberg; null: as the flag of the writer ingest.api says")
    partition_by: list[str] = []


class Page(BaseModel):
    """Rows in the order in which they were written."""

    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "dataset": "main.sales.orders",
                "version": 3,
                "rows": [{"id": 1, "note": "first", "amount": 12.5000}],
                "next": "3.0",
            }
        }
    )

    dataset: str
    version: int = Field(description="the version that they are of")
    rows: list[dict[str, Any]] = Field(description="numbers have all their digits: read them with a parser that keeps")
    next: str | None = Field(description="the `page` that follows; null: there is none")


class Written(BaseModel):
    """What a write did: `rows_in` is the sum of what became of its rows."""

    dataset: str
    version: int
    verb: str
    rows_in: int
    rows_added: int
    rows_updated: int
    rows_unchanged: int
    rows_deleted: int
    rows_skipped: int
    row_count: int
    committed: bool = Field(description="false: there was nothing to write, and no version was made")
    build_id: str | None
    repeated: bool = Field(description="an earlier request with the same idempotency key wrote them")


class Digest(BaseModel):
    """The checksum of a version, which does not depend on the order of rows, or on the arm."""

    dataset: str
    version: int
    arm: str
    digest: str
    rows: int
