"""The client, through which dlt speaks to a workspace; its jobs look at the files, and its `complete_load` commits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType

from dlt.common.destination import DestinationCapabilitiesContext
from dlt.common.destination.client import (
    JobClientBase,
    LoadJob,
    RunnableLoadJob,
    StateInfo,
    StorageSchemaInfo,
    WithStateSync,
)
from dlt.common.destination.typing import PreparedTableSchema
from dlt.common.schema import Schema as DltSchema
from dlt.common.schema import TSchemaTables

from lakeward.dlt.configuration import LakewardConfiguration
from lakeward.dlt.loading import WRITER, Loading
from lakeward.dlt.own_tables import OwnTables
from lakeward.dlt.package import LoadPackage, check_file
from lakeward.dlt.tables import Tables
from lakeward.dlt.workspaces import workspace_of
from lakeward.errors import UsageError
from lakeward.wiring.workspace import Workspace


class FileJob(RunnableLoadJob):
    """Looks at one file of a package, which stays where it is until the whole package is committed."""

    def run(self) -> None:
        """Check that the file can be read."""
        check_file(Path(self._file_path))


class LakewardClient(JobClientBase, WithStateSync):
    """Loads the packages of one schema of dlt."""

    config: LakewardConfiguration
    given: Workspace | None = None
    """The workspace, if the destination was made for one that is open."""

    def __init__(
        self, schema: DltSchema, config: LakewardConfiguration, capabilities: DestinationCapabilitiesContext
    ) -> None:
        super().__init__(schema, config, capabilities)

    def initialize_storage(self, truncate_tables: Iterable[str] | None = None) -> None:
        """Do nothing: datasets are made when they are written to, and emptied with what is written next."""

    def is_storage_initialized(self) -> bool:
        """Say whether a package was ever loaded."""
        return self._own().there

    def drop_storage(self) -> None:
        """Refuse to.

        Raises:
            UsageError: always. A schema of a workspace may hold more than what dlt loaded.
        """
        raise UsageError(
            f"dlt can't drop schema {'.'.join(self._levels())}",
            safe="nothing was changed",
            next_step="lakeward dataset drop NAME",
        )

    def drop_tables(self, *tables: str, delete_schema: bool = True) -> None:
        """Do nothing yet: tables that a refresh drops are emptied by the commit of its package."""

    def update_stored_schema(
        self,
        only_tables: Iterable[str] | None = None,
        expected_update: TSchemaTables | None = None,
        force: bool = False,
    ) -> TSchemaTables | None:
        """Check that the tables fit their datasets, before anything is written. The schema is stored by the commit.

        Raises:
            SchemaError, ColumnMismatch, NameTaken: a table does not; table and column are named.
        """
        update = super().update_stored_schema(only_tables, expected_update, force)  # type: ignore[arg-type]
        self._tables().loads(sorted(only_tables or self.schema.data_table_names(seen_data_only=True)))
        return update

    def create_load_job(
        self, table: PreparedTableSchema, file_path: str, load_id: str, restore: bool = False
    ) -> LoadJob:
        """Return the job that looks at a file."""
        return FileJob(file_path)

    def complete_load(self, load_id: str) -> None:
        """Commit the package; if it was committed before, do nothing.

        Raises:
            LakewardError: nothing of the package was written. It stays pending, and the next run tries again.
        """
        workspace, tables = self._workspace(), self._tables()
        Loading(workspace, tables, self._own(), LoadPackage.current(load_id)).commit()

    def get_stored_schema(self, schema_name: str | None = None) -> StorageSchemaInfo | None:
        """Return the newest schema, of that name if one is given."""
        return self._own().stored_schema({"schema_name": schema_name} if schema_name else {})

    def get_stored_schema_by_hash(self, version_hash: str) -> StorageSchemaInfo | None:  # type: ignore[override]
        """Return the schema with that hash."""
        return self._own().stored_schema({"version_hash": version_hash})

    def get_stored_state(self, pipeline_name: str) -> StateInfo | None:
        """Return the newest state of a pipeline.

        Raises:
            DestinationUndefinedEntity: no package was ever loaded.
        """
        return self._own().stored_state(pipeline_name)

    def __enter__(self) -> LakewardClient:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        pass

    def _workspace(self) -> Workspace:
        if self.given is not None:
            return self.given
        config = self.config
        return workspace_of({"home": config.home, "database_url": config.database_url, "warehouse": config.warehouse})

    def _levels(self) -> tuple[str, str]:
        return self.config.catalog, self.config.normalize_dataset_name(self.schema)

    def _tables(self) -> Tables:
        workspace = self._workspace()
        mode = workspace.storage.flags.mode_of_new(WRITER)
        return Tables(self, workspace.tree, self._levels(), self.config.arm, mode)

    def _own(self) -> OwnTables:
        return OwnTables(self._workspace(), self.schema, self._tables())
