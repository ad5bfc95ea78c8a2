"""dlt's own tables as datasets: which packages were loaded, its schemas, and the state of its pipelines.

They are written in the build of the rows that they stand for. So a package that is loaded again is known, and no state
is ever ahead of its rows, or behind them. They are made on the Postgres arm, since each load adds a row to them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pyarrow as pa
from dlt.common.destination.client import StateInfo, StorageSchemaInfo
from dlt.common.destination.exceptions import DestinationUndefinedEntity
from dlt.common.schema import Schema as DltSchema

from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord
from lakeward.dlt.column_types import logical_type
from lakeward.dlt.merging import READER
from lakeward.dlt.package import LoadPackage, rows_of
from lakeward.dlt.tables import Tables
from lakeward.errors import LakewardError, NameTaken
from lakeward.storage.requests import Output, ReadRequest
from lakeward.types.conform import to_reader
from lakeward.types.quoting import duckdb_name, duckdb_text
from lakeward.wiring.actor import actor
from lakeward.wiring.declaring import Declaration, check_same, declare
from lakeward.wiring.workspace import Workspace


class LoadedAlready(LakewardError):
    """The package was loaded before: there is nothing to do."""


class OwnTables:
    """dlt's own tables in one schema of a workspace.

    Args:
        workspace: where they are.
        schema: of dlt; knows their names and columns.
        tables: knows the names of their datasets.
    """

    def __init__(self, workspace: Workspace, schema: DltSchema, tables: Tables) -> None:
        self._workspace = workspace
        self._schema = schema
        self._tables = tables

    @property
    def there(self) -> bool:
        """Whether any package was loaded."""
        return self._find(self._schema.loads_table_name) is not None

    def check_new(self, load_id: str) -> None:
        """Raise LoadedAlready if a package was loaded."""
        if self._rows(self._schema.loads_table_name, {"load_id": load_id}, ("load_id",)):
            raise LoadedAlready(f"load package {load_id} was loaded before", load_id=load_id)

    def outputs(self, package: LoadPackage) -> list[Output]:
        """Return what is written of the package itself: its id, its schema if that is new, and the pipeline's state."""

        def held(_: OpenTransaction) -> None:
            # Nobody else can load a package into this schema now.
            self.check_new(package.load_id)

        loads = self._made(self._schema.loads_table_name)
        versions = self._made(self._schema.version_table_name)
        made = [
            Output(loads, "append", partial(self._loaded, loads, package.load_id), opened=held),
            Output(versions, "append", partial(self._version, versions)),
        ]
        files = package.files.get(self._schema.state_table_name, ())
        if files:
            states = self._made(self._schema.state_table_name)
            made.append(Output(states, "append", partial(rows_of, files, states.schema, states.name)))
        return made

    def stored_schema(self, wanted: dict[str, str]) -> StorageSchemaInfo | None:
        """Return the newest schema with these values, by dlt's names of the columns; None: there is none."""
        rows = self._rows(self._schema.version_table_name, wanted)
        if not rows:
            return None
        inserted_at = self._normal("inserted_at")
        newest = max(rows, key=lambda row: row[inserted_at])
        return StorageSchemaInfo.from_normalized_mapping(newest, self._schema.naming)

    def stored_state(self, pipeline: str) -> StateInfo | None:
        """Return the newest state of a pipeline; None: it has none.

        Raises:
            DestinationUndefinedEntity: no package was ever loaded.
        """
        if not self.there:
            raise DestinationUndefinedEntity(f"{self._tables.dataset(self._schema.loads_table_name)} is not there")
        rows = self._rows(self._schema.state_table_name, {"pipeline_name": pipeline})
        if not rows:
            return None
        load_id, version = self._normal("_dlt_load_id"), self._normal("version")
        newest = max(rows, key=lambda row: (row[load_id], row[version]))
        return StateInfo.from_normalized_mapping(newest, self._schema.naming)

    def _loaded(self, record: DatasetRecord, load_id: str) -> pa.RecordBatchReader:
        return self._row(
            record,
            load_id=load_id,
            schema_name=self._schema.name,
            status=0,
            inserted_at=datetime.now(UTC),
            schema_version_hash=self._schema.version_hash,
        )

    def _version(self, record: DatasetRecord) -> pa.RecordBatchReader:
        schema = self._schema
        if self._rows(schema.version_table_name, {"version_hash": schema.version_hash}, ("version_hash",)):
            return to_reader((), record.schema, dataset=record.name)
        return self._row(
            record,
            version=schema.version,
            engine_version=schema.ENGINE_VERSION,
            inserted_at=datetime.now(UTC),
            schema_name=schema.name,
            version_hash=schema.version_hash,
            schema=json.dumps(schema.to_dict()),
        )

    def _row(self, record: DatasetRecord, **values: object) -> pa.RecordBatchReader:
        row = {self._normal(name): value for name, value in values.items()}
        # A column that an earlier or later release of dlt has besides is null.
        return to_reader([{name: row.get(name) for name in record.schema.names}], record.schema, dataset=record.name)

    def _rows(self, table: str, wanted: dict[str, str], columns: Sequence[str] | None = None) -> list[dict[str, Any]]:
        record = self._find(table)
        if record is None:
            return []
        where = " AND ".join(
            f"{duckdb_name(self._normal(name))} = {duckdb_text(value)}" for name, value in wanted.items()
        )
        names = None if columns is None else tuple(map(self._normal, columns))
        request = ReadRequest(columns=names, where=where or None)
        rows: list[dict[str, Any]] = self._workspace.storage.read(record, request, reader=READER).read_all().to_pylist()
        return rows

    def _made(self, table: str) -> DatasetRecord:
        found = self._find(table)
        if found is not None:
            return found
        declared = self._schema.get_table(table)["columns"]
        columns = {name: logical_type(column, table) for name, column in declared.items()}
        name, tree = self._tables.dataset(table), self._workspace.tree
        return made(self._workspace, declare(tree, name, columns, (), "postgres", mode="pg"))

    def _find(self, table: str) -> DatasetRecord | None:
        return self._workspace.tree.find(self._tables.dataset(table))

    def _normal(self, name: str) -> str:
        return self._schema.naming.normalize_identifier(name)


def made(workspace: Workspace, declaration: Declaration) -> DatasetRecord:
    """Return the dataset of a declaration, made if it is missing.

    Raises:
        NameTaken: another pipeline made it meanwhile, and otherwise; or the name is a twin of another's.
    """
    try:
        return declaration.carry_out(workspace.tree, actor())
    except NameTaken:
        existing = workspace.tree.find(declaration.name)
        if existing is None:
            raise
        check_same(existing, declaration.schema)
        return existing
