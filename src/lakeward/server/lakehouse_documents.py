"""The documents of `/lakehouse`, in the spelling of the platforms that call it: camelCase, and long numbers as text."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue
from pydantic.alias_generators import to_camel

from lakeward.control.addresses import Commit
from lakeward.control.identifiers import TableIdentifier
from lakeward.storage.requests import WriteResult
from lakeward.wiring.dataset import Dataset
from lakeward.wiring.lakehouse import Freshness

ADDRESS: dict[str, JsonValue] = {"namespace": ["erp", "emea", "north"], "table": "orders"}
DATASET = 'erp."emea.north".orders'
COMMIT: dict[str, JsonValue] = {
    "transactionId": "42",
    "committedAt": "2026-05-04T09:30:00.123456Z",
    "rowCount": 1200,
    "created": True,
    "version": 1,
    "snapshotId": "8207398471236412347",
}


def _shaped(example: dict[str, Any], extra: Literal["ignore", "forbid"] = "ignore") -> ConfigDict:
    shown: dict[str, JsonValue] = {"example": example}
    return ConfigDict(alias_generator=to_camel, populate_by_name=True, json_schema_extra=shown, extra=extra)


class Committed(BaseModel):
    """The transaction by which rows became visible."""

    transaction_id: str | None = Field(description="of the ledger; null: the table has no version yet")
    committed_at: datetime | None = Field(description="by the clock of Postgres")
    row_count: int = Field(description="rows of the table at that version")
    created: bool = Field(description="it was the first of the table, and made it; so says a repeated request, too")
    version: int
    snapshot_id: str | None = Field(description="that holds the version; null: the Iceberg table has not got it")

    @staticmethod
    def facts(commit: Commit | None) -> dict[str, Any]:
        """Return the fields of a commit; None: there was none."""
        if commit is None:
            return {"transaction_id": None, "committed_at": None, "row_count": 0, "created": False, "snapshot_id": None}
        return {
            "transaction_id": str(commit.id),
            "committed_at": commit.committed_at,
            "row_count": commit.row_count,
            "created": commit.first,
            "snapshot_id": _text(commit.snapshot_id),
        }


class Ingested(Committed):
    """What an ingest did."""

    model_config = _shaped(
        {
            **ADDRESS,
            "dataset": DATASET,
            **COMMIT,
            "committed": True,
            "repeated": False,
            "rowsIn": 1200,
            "rowsAdded": 1200,
            "rowsUpdated": 0,
            "rowsUnchanged": 0,
            "rowsDeleted": 0,
            "rowsSkipped": 0,
            "warnings": [],
        }
    )

    namespace: list[str] = Field(description="where the table is now")
    table: str
    dataset: str
    committed: bool = Field(description="false: there was nothing to write; the transaction is an earlier one")
    repeated: bool = Field(description="an earlier request with the same idempotency key wrote the rows")
    rows_in: int
    rows_added: int
    rows_updated: int
    rows_unchanged: int
    rows_deleted: int
    rows_skipped: int
    warnings: list[str]

    @classmethod
    def of(cls, dataset: Dataset, result: WriteResult, commit: Commit | None) -> Ingested:
        """Return what a write did."""
        counts = {name: value for name, value in vars(result).items() if name.startswith("rows_")}
        told = {"version": result.version, "committed": result.committed, "repeated": result.repeated}
        facts = {**place_of(dataset), **Committed.facts(commit), **told, **counts}
        return cls(**facts, warnings=list(result.warnings))


class Fresh(BaseModel):
    """What an arm holds of a table, by the ledger."""

    model_config = _shaped(
        {
            **ADDRESS,
            "dataset": DATASET,
            "arm": "iceberg",
            "version": 7,
            "transactionId": "61",
            "committedAt": "2026-05-04T09:30:00.123456Z",
            "rowCount": 1200,
            "snapshotId": "8207398471236412347",
            "newestVersion": 7,
            "behindVersions": 0,
            "behindRows": 0,
            "status": "active",
        }
    )

    namespace: list[str] = Field(description="where the table is now")
    table: str
    dataset: str
    arm: str
    version: int | None = Field(description="the newest that the arm holds; null: none, and so are the next four")
    transaction_id: str | None
    committed_at: datetime | None
    row_count: int | None
    snapshot_id: str | None
    newest_version: int = Field(description="of the dataset, on whichever arm; 0: it has none")
    behind_versions: int = Field(description="versions that the arm has missed; 0: it is current")
    behind_rows: int = Field(description="rows that those wrote or removed")
    status: str = Field(description="of the dataset; diverged: another engine wrote to its table")

    @classmethod
    def of(cls, dataset: Dataset, found: Freshness) -> Fresh:
        """Return it."""
        commit, lag = found.commit, found.lag
        return cls(
            **place_of(dataset),
            arm=lag.arm,
            version=found.version,
            transaction_id=str(commit.id) if commit is not None else None,
            committed_at=commit.committed_at if commit is not None else None,
            row_count=commit.row_count if commit is not None else None,
            snapshot_id=_text(commit.snapshot_id) if commit is not None else None,
            newest_version=lag.head,
            behind_versions=lag.versions,
            behind_rows=lag.rows,
            status=dataset.record.status,
        )


class Registration(BaseModel):
    """A table of the catalog that is to be a dataset."""

    model_config = _shaped({**ADDRESS, "primaryKey": ["id"]}, extra="forbid")

    namespace: list[str] = Field(min_length=1, description="its levels, the outermost first")
    table: str = Field(min_length=1)
    dataset: str | None = Field(None, description="what the dataset is called; null: as the table")
    primary_key: list[str] = Field([], description="its key columns, which have to be one: all rows are looked at")
    add_identity: bool = Field(False, description="write the rows anew at once, with identity columns")
    dry_run: bool = Field(False, description="only say what would be done")


class Registered(Committed):
    """What registering a table did, or would do."""

    model_config = _shaped(
        {
            **ADDRESS,
            "dataset": DATASET,
            **COMMIT,
            "repeated": False,
            "dryRun": False,
            "actions": ["create dataset …", "record its snapshot 8207398471236412347 as version 1 (1,200 rows)"],
        }
    )

    namespace: list[str]
    table: str
    dataset: str
    repeated: bool = Field(description="it was registered already")
    dry_run: bool
    actions: list[str] = Field(description="what was done, or would be, in order")


class Place(BaseModel):
    """Where a table goes."""

    model_config = ConfigDict(extra="forbid")

    namespace: list[str] = Field(min_length=1, description="its levels; those that are missing are made")
    table: str | None = Field(None, min_length=1, description="its name there; null: as it is called")


class MoveOrder(BaseModel):
    """A table that is to be called otherwise in the catalog. No file is touched."""

    model_config = _shaped({**ADDRESS, "to": {"namespace": ["erp", "archive"], "table": "orders"}}, extra="forbid")

    namespace: list[str] = Field(min_length=1, description="where it is, or was before it was moved")
    table: str = Field(min_length=1)
    to: Place | None = Field(None, description="where to; null: where it belongs")
    undo: bool = Field(False, description="take its newest move back, instead")
    dry_run: bool = Field(False, description="only say what would be done")


class Moved(BaseModel):
    """What became of a table's name."""

    model_config = _shaped(
        {
            "namespace": ["erp", "archive"],
            "table": "orders",
            "dataset": DATASET,
            "moved": True,
            "way": "rename",
            "dryRun": False,
            "actions": ['erp."emea.north".orders: give table erp.emea.north.orders the name erp.archive.orders'],
        }
    )

    namespace: list[str] = Field(description="where the table is now")
    table: str
    dataset: str
    moved: bool = Field(description="false: it was there already, or this was a dry run")
    way: str | None = Field(description="how the catalog did it: rename or register")
    dry_run: bool
    actions: list[str] = Field(description="what was done, or would be")


def place_of(dataset: Dataset) -> dict[str, Any]:
    """Return where a dataset's table is now, or will be made."""
    record = dataset.record
    place: TableIdentifier = record.identifier if record.head_version else record.home
    return {"namespace": list(place.namespace), "table": place.name, "dataset": record.name}


def _text(number: int | None) -> str | None:
    # Some languages read every number as a double, which has 53 bits.
    return str(number) if number is not None else None
