"""One arm under test, driven through the write protocol and read through the facade, whichever arm it is."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from lakeward import Workspace, WriteResult
from lakeward.control.history import History
from lakeward.control.routes import ARM_MODES
from lakeward.control.tree import DatasetRecord
from lakeward.migration.comparing import compare
from lakeward.storage.requests import ChangesRequest, Output, PreparedVersion, ReadRequest
from lakeward.storage.table import TableRef, table_ref
from lakeward.storage.verbs import VERBS, verb_named
from lakeward.types.conform import to_reader
from lakeward.types.digest import Digest
from lakeward.types.schema import Schema

_numbers = itertools.count(1)


@dataclass(frozen=True)
class ArmUnderTest:
    """An arm of a workspace. A dataset's route names lasting arms only; writes are sent to any other one by name."""

    workspace: Workspace
    name: str

    def create(self, columns: Mapping[str, Any], primary_key: Sequence[str] = ()) -> HeldDataset:
        """Make a dataset of a name of its own."""
        record = self.workspace.tree.create_dataset(
            f"main.conformance.d{next(_numbers)}",
            Schema.declare(columns, primary_key),
            arm=self.name if self.name in ARM_MODES else "postgres",
        )
        return HeldDataset(self.workspace, self.name, record)


@dataclass(frozen=True)
class HeldDataset:
    """A dataset whose writes all go to one arm, and whose reads come from there."""

    workspace: Workspace
    arm: str
    created: DatasetRecord

    @property
    def record(self) -> DatasetRecord:
        return self.workspace.tree.by_id(self.created.id)

    @property
    def table(self) -> TableRef:
        return table_ref(self.record)

    @property
    def schema(self) -> Schema:
        return self.created.schema

    @property
    def version(self) -> int:
        return self.record.head_version

    def output(
        self,
        rows: object,
        mode: str = "append",
        allow_empty: bool = False,
        audit: Callable[[PreparedVersion], None] | None = None,
    ) -> Output:
        taken = VERBS[mode].input_schema(self.schema) if mode in VERBS else self.schema
        return Output(
            self.record,
            mode,
            lambda: to_reader(rows, taken, dataset=self.created.name),
            allow_empty=allow_empty,
            audit=audit,
        )

    def write(
        self,
        rows: object,
        mode: str = "append",
        allow_empty: bool = False,
        audit: Callable[[PreparedVersion], None] | None = None,
    ) -> WriteResult:
        verb_named(mode).check(self.schema, self.created.name)
        output = self.output(rows, mode, allow_empty, audit)
        return self.workspace.storage.protocol.run([output], writer="conformance", arm=self.arm).transactions[0]

    def to_arrow(self, arm: str | None = None, **request: Any) -> pa.Table:
        if "columns" in request:
            request["columns"] = tuple(request["columns"])
        return self.workspace.storage.read(self.record, ReadRequest(arm=arm or self.arm, **request)).read_all()

    def rows(self, **request: Any) -> list[dict[str, Any]]:
        """Return rows in the order of their position."""
        table = self.to_arrow(**{**request, "identity": True})
        ordered = table.sort_by("__row_index")
        if not request.get("identity"):
            ordered = ordered.select(table.column_names[:-4])
        return ordered.to_pylist()

    def changes(self, since: int, version: int | None = None, **request: Any) -> list[dict[str, Any]]:
        """Return what changed, as it comes; from this dataset's arm unless another one is named."""
        if request.get("columns") is not None:
            request["columns"] = tuple(request["columns"])
        asked = ChangesRequest(since, version, **{"arm": self.arm, **request})
        return self.workspace.storage.changes(self.record, asked).read_all().to_pylist()

    def digest(self, version: int | None = None, arm: str | None = None) -> Digest:
        return self.workspace.storage.digest(self.record, arm=arm or self.arm, version=version)

    def committed_versions(self) -> list[int]:
        """Return the versions that were committed, newest first."""
        # Of this dataset only: hundreds of tests share the workspace, and each would read what all of them wrote.
        history = History(self.workspace.database)
        names = {self.created.id: self.created.name}
        found = history.transactions(names, dataset_id=self.created.id, status="committed", most=100_000)
        return [transaction.version for transaction in found]

    def leftovers(self) -> dict[str, list[int]]:
        """Return the versions that some place still keeps although they never were committed."""
        committed = set(self.committed_versions())
        found: dict[str, list[int]] = {}
        for place, versions in self._physical_versions().items():
            strangers = sorted(set(versions) - committed)
            if strangers:
                found[place] = strangers
        return found

    def _physical_versions(self) -> dict[str, list[int]]:
        return {
            "postgres": stored_versions(self.workspace, self.created.id),
            "iceberg": [int(name.split("-")[1]) for name in branches(self.workspace, self.table)],
        }


def copied(workspace: Workspace, record: DatasetRecord, to: str, **how: Any) -> None:
    """Bring a dataset to the other arm by a backfill, and compare it there, so that it counts."""
    workspace.replication.backfill(record, to, **how)
    compare(workspace.comparisons._rooms, record, to)


def stored_versions(workspace: Workspace, dataset_id: int) -> list[int]:
    """Return the versions, and marks of versions, that rows of the Postgres arm carry."""
    with workspace.database.driver() as connection:
        return [
            version
            for (version,) in connection.execute(
                "SELECT version FROM lakeward.dataset_rows WHERE dataset_id = %(id)s UNION "
                "SELECT until FROM lakeward.dataset_rows WHERE dataset_id = %(id)s AND until IS NOT NULL",
                {"id": dataset_id},
            )
        ]


def branches(workspace: Workspace, table: TableRef) -> list[str]:
    """Return the branches of the dataset's Iceberg table besides `main`."""
    loaded = iceberg_table(workspace, table)
    return [] if loaded is None else [name for name in loaded.metadata.refs if name != "main"]


def iceberg_table(workspace: Workspace, table: TableRef) -> Any:
    """Return PyIceberg's own view of the dataset's table, loaded anew from the catalog, or None."""
    return workspace.storage.routing.arm("iceberg")._tables.find(table)
