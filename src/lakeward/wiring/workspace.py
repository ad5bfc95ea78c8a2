"""The handles that the public API returns: a workspace, and its datasets."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Unpack

import pyarrow as pa

from lakeward.control.db import Database
from lakeward.control.history import History, Recoverable
from lakeward.control.ledger import Ledger
from lakeward.control.records import Transaction
from lakeward.control.retention import Retention
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.pipelines.build import Progress
from lakeward.pipelines.plan import Plan
from lakeward.pipelines.service import Pipelines
from lakeward.storage.facade import Parity, Storage
from lakeward.storage.maintenance import DEFAULT_SECONDS, MaintenanceReport
from lakeward.storage.recovery import Recovered, Recovery
from lakeward.storage.requests import BuildResult, ReadRequest, WriteResult
from lakeward.types.digest import Digest
from lakeward.types.logical import LogicalType
from lakeward.types.schema import Schema
from lakeward.wiring.declaring import Declaration, declare
from lakeward.wiring.overview import DatasetStatus, dataset_status
from lakeward.wiring.settings import LoadedSettings
from lakeward.wiring.transfer import ExportResult, ImportHow, ImportPlan, ImportRequest, ImportResult, Transfer
from lakeward.wiring.transfer import Progress as TransferProgress
from lakeward.wiring.upkeep import Upkeep


class Workspace:
    """An open workspace: datasets, pipelines, and the ledger that coordinates them. Made by `lakeward.open`.

    It is safe to use from several threads. Close it, or use it as a context manager: the embedded server stops with its
    last user.
    """

    def __init__(
        self,
        *,
        settings: LoadedSettings,
        database: Database,
        tree: Tree,
        ledger: Ledger,
        storage: Storage,
        recovery: Recovery,
        retention: Retention,
        upkeep: Upkeep,
        pipelines: Pipelines,
        close: Callable[[], None],
    ) -> None:
        self.settings = settings
        self.database = database
        self.tree = tree
        self.ledger = ledger
        self.storage = storage
        self.recovery = recovery
        self.retention = retention
        self.upkeep = upkeep
        self.pipelines = pipelines
        self.transfer = Transfer(tree, storage)
        self._close = close

    # Datasets --------------------------------------------------------------------------------------------------------

    def create_dataset(
        self,
        name: str,
        columns: Mapping[str, str | LogicalType],
        primary_key: Sequence[str] = (),
        arm: str = "postgres",
    ) -> Dataset:
        """Make a dataset without rows; its catalog and schema are made where they are missing.

        Args:
            name: `catalog.schema.dataset`; double quotes around a level that holds a dot.
            columns: type texts by column name, in order: `long`, `string`, `decimal(18,4)`, `list<int>` …
            primary_key: names of the key columns; may be empty.
            arm: where its rows will live: `postgres` or `iceberg`.

        Raises:
            NameTaken, InvalidName, SchemaError, UnknownObject: see there.

        Example:
            >>> orders = ws.create_dataset("main.sales.orders", {"id": "long", "note": "string"}, ["id"])
            >>> orders.arm
            'postgres'
        """
        schema = Schema.declare(columns, primary_key, name)
        return Dataset(self, self.tree.create_dataset(name, schema, arm=arm, actor=actor()))

    def dataset(self, name: str) -> Dataset:
        """Return a dataset by its full name.

        Raises:
            UnknownObject: there is none, with the nearest names that there are.
        """
        return Dataset(self, self.tree.dataset(name))

    def datasets(self) -> list[Dataset]:
        """Return every dataset, ordered by name."""
        return [Dataset(self, record) for record in self.tree.datasets()]

    def declare_dataset(
        self,
        name: str,
        columns: Mapping[str, str | LogicalType],
        primary_key: Sequence[str] = (),
        arm: str | None = None,
    ) -> Declaration:
        """Check a declaration as `create_dataset` would; a dataset that is as declared is fine. Changes nothing.

        Raises:
            NameTaken: the dataset exists and is another one.
        """
        return declare(self.tree, name, columns, primary_key, arm)

    def ensure_dataset(self, declaration: Declaration) -> Dataset:
        """Return the dataset that was declared, made if it is missing."""
        return Dataset(self, declaration.carry_out(self.tree, actor()))

    def plan_import(
        self, name: str, path: str | Path, progress: TransferProgress | None = None, **how: Unpack[ImportHow]
    ) -> ImportPlan:
        """Check what `import_file` would do, reading the whole file if the dataset is new. Changes nothing."""
        return self.transfer.plan_import(ImportRequest(name, Path(path), **how), progress)

    def run_import(self, plan: ImportPlan, progress: TransferProgress | None = None) -> ImportResult:
        """Carry out a planned import: all rows become visible at once, or none."""
        return self.transfer.run_import(plan, actor(), progress)

    def import_file(
        self, name: str, path: str | Path, progress: TransferProgress | None = None, **how: Unpack[ImportHow]
    ) -> ImportResult:
        """Import a file into a dataset, which is made if it is missing.

        Args:
            name: the dataset's full name.
            path: a file; its suffix says how it is read (`.csv`, `.csv.gz`, `.csv.zip`, `.parquet`).
            progress: is told what is done and how many rows so far.
            how: see `ImportRequest`: `columns`, `primary_key`, `arm`, `mode`, `create`, `format`, `options` …

        Raises:
            SourceFileError: the file is not what it claims to be, with line and column; the dataset is unchanged.
            NameTaken: the dataset exists, and columns, key or arm were declared that it does not have.
        """
        return self.run_import(self.plan_import(name, path, progress, **how), progress)

    def status(self) -> list[DatasetStatus]:
        """Return where every dataset is, by name."""
        return [dataset_status(record, self.ledger) for record in self.tree.datasets()]

    # Pipelines -------------------------------------------------------------------------------------------------------

    def plan(self, project: str | Path = ".") -> Plan:
        """Say what `apply` would change; changes nothing."""
        return self.pipelines.plan(self.pipelines.load(Path(project)))

    def apply(self, project: str | Path = ".") -> Plan:
        """Store the project's pipelines, so that `build` can run them. Returns what was changed.

        Raises:
            SpecError, SqlError: a file is wrong; nothing was stored.
        """
        return self.pipelines.apply(self.pipelines.load(Path(project)), actor())

    def build(self, *names: str, full: bool = False, progress: Progress | None = None) -> list[BuildResult]:
        """Run applied pipelines in the order of their datasets, and leave alone those whose outputs are up to date.

        Args:
            names: which; none: all of them.
            full: run also those that are up to date. A query that depends on now or on chance needs it.
            progress: is told how many rows of which output were computed so far.
        """
        return self.pipelines.build(list(names) or None, full=full, progress=progress)

    # The ledger ------------------------------------------------------------------------------------------------------

    def recover(self) -> list[Recovered]:
        """Finish or remove what processes that died left behind; repeating it does nothing more."""
        return self.recovery.recover()

    def recoverable(self) -> list[Recoverable]:
        """Return what `recover` would look at; changes nothing."""
        return History(self.database).recoverable({record.id: record.name for record in self.tree.datasets()})

    def maintain(
        self,
        *datasets: str,
        older_than: float = DEFAULT_SECONDS,
        dry_run: bool = False,
        progress: Callable[[str, int], None] | None = None,
    ) -> MaintenanceReport:
        """Expire old versions, and remove what nothing needs: snapshots, rows and files that no readable version has.

        Safe at any time, in several processes at once, while others read and write. Repeating it does nothing more.

        Args:
            datasets: which; none: all of them, and what processes that died left in the scratch directory.
            older_than: seconds; what is younger, or was needed so recently, stays. At least the length of a lease.
            dry_run: find out what would go, and change nothing.
            progress: is told what is done, and of how many things so far.

        Raises:
            UnknownObject: no such dataset.
            UsageError: `older_than` is shorter than a lease.

        Example:
            >>> ws.maintain().removed
            []
        """
        return self.upkeep.run(datasets, older_than=older_than, dry_run=dry_run, progress=progress)

    def transactions(self, *, status: str | None = None, most: int = 100) -> list[Transaction]:
        """Return ledger rows of all datasets, newest first."""
        names = {record.id: record.name for record in self.tree.datasets()}
        return History(self.database).transactions(names, status=status, most=most)

    def close(self) -> None:
        """Give up connections; the last user of an embedded server stops it. Repeating it does nothing."""
        self._close()

    def __enter__(self) -> Workspace:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Workspace({self.database.display_url!r})"


class Dataset:
    """One dataset of an open workspace, wherever its rows are. Its properties are those of this moment."""

    def __init__(self, workspace: Workspace, record: DatasetRecord) -> None:
        self._workspace = workspace
        self._id = record.id
        self.name = record.name

    @property
    def record(self) -> DatasetRecord:
        """What the control plane knows of it now."""
        return self._workspace.tree.by_id(self._id)

    @property
    def schema(self) -> Schema:
        """Its columns and key."""
        return self.record.schema

    @property
    def arm(self) -> str:
        """The arm that serves it."""
        return self.record.arm

    @property
    def version(self) -> int:
        """Its newest committed version; 0 before the first."""
        return self.record.head_version

    @property
    def row_count(self) -> int:
        """The number of rows at the newest version, from the ledger."""
        return self.record.row_count

    def write(self, rows: object, mode: str = "append", allow_empty: bool = False) -> WriteResult:
        """Write rows, atomically: all of them become visible at once, or none.

        Args:
            rows: an Arrow table, batch or reader, a DuckDB relation or anything else that exports an Arrow stream, or
                an iterable of dicts. Columns are matched by name; values are converted only without loss.
            mode: `append` or `replace`.
            allow_empty: lets `replace` write zero rows. Otherwise no rows: nothing is committed.

        Returns:
            The version and the counts of rows; `rows_in = added + updated + unchanged + skipped`.

        Raises:
            ValueRefused: a value can't be stored without loss; names its row, column and key. Nothing was written.
            ColumnMismatch: the columns are not the dataset's. Nothing was written.
            ConflictError: somebody else holds or changed the dataset. Nothing was written.

        Example:
            >>> orders.write([{"id": 1, "note": "first"}, {"id": 2, "note": None}]).row_count
            2
        """
        return self._workspace.storage.write(
            self.record, rows, verb=mode, writer="dataset.write", allow_empty=allow_empty
        )

    def read(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        since: int | None = None,
        identity: bool = False,
        arm: str | None = None,
    ) -> pa.RecordBatchReader:
        """Stream rows, in no particular order.

        Args:
            columns: which columns; None: all.
            where: a SQL predicate over the row's columns.
            version: the dataset as it was at this version; None: the newest when this is called.
            since: only rows written after this version.
            identity: add `__row_index`, `__row_id`, `__created_at` and `__version`.
            arm: read from this arm, which must hold the version; None: the one that serves.

        Raises:
            SqlError: `where` is not a predicate over the columns.
            UnknownVersion, ArmNotCurrent, SchemaError: see there.
        """
        chosen = tuple(columns) if columns is not None else None
        request = ReadRequest(chosen, where, version, since, identity, arm)
        return self._workspace.storage.read(self.record, request)

    def to_arrow(
        self,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        since: int | None = None,
        identity: bool = False,
        arm: str | None = None,
    ) -> pa.Table:
        """Return rows as one table in memory; the arguments are those of `read`.

        Example:
            >>> orders.to_arrow(columns=["id"], where="note is not null").to_pylist()
            [{'id': 1}]
        """
        return self.read(columns, where, version, since, identity, arm).read_all()

    def preview(
        self, rows: int = 10, where: str | None = None, version: int | None = None, identity: bool = False
    ) -> pa.Table:
        """Return the first rows in the order in which they were written; the arguments are those of `read`."""
        request = ReadRequest(where=where, version=version, identity=identity)
        return self._workspace.storage.first_rows(self.record, rows, request)

    def digest(self, arm: str | None = None, version: int | None = None) -> Digest:
        """Compute the order-independent checksum of a version from the rows of an arm (None: the one that serves)."""
        return self._workspace.storage.digest(self.record, arm=arm, version=version)

    def verify(self) -> Parity:
        """Compare the digests of every arm that holds the newest version.

        Raises:
            ParityMismatch: they differ.
        """
        return self._workspace.storage.verify(self.record)

    def copy_to(self, arm: str, progress: Callable[[int], None] | None = None) -> WriteResult:
        """Bring the newest version to another arm, verified before it is visible; the serving arm stays the same.

        Args:
            arm: `postgres` or `iceberg`.
            progress: is told how many rows were read so far.
        """
        return self._workspace.storage.copy(self.record, arm, progress=progress)

    def locate(self) -> dict[str, dict[str, str]]:
        """Say, for each arm that holds the newest version, where its rows physically are."""
        return self._workspace.storage.locate(self.record)

    def export(
        self,
        path: str | Path,
        *,
        columns: Sequence[str] | None = None,
        where: str | None = None,
        version: int | None = None,
        overwrite: bool = False,
        options: Mapping[str, Any] | None = None,
        progress: TransferProgress | None = None,
    ) -> ExportResult:
        """Write rows to a `.csv` or `.parquet` file, which appears when it is complete.

        Args:
            path: where; a file that is there is refused, unless `overwrite`.
            columns, where, version: which rows, as in `read`.
            overwrite: replace a file that is there.
            options: for CSV: `delimiter`, `quote`, `header`, `null_markers`, `encoding`.
            progress: is told the rows so far.

        Raises:
            UsageError: the file is there, can't be written, or its suffix is unknown.
            SchemaError, ValueRefused: the format can't hold a type or value.
        """
        chosen = tuple(columns) if columns is not None else None
        return self._workspace.transfer.export(
            self.record,
            Path(path),
            ReadRequest(chosen, where, version),
            overwrite=overwrite,
            options=options,
            progress=progress,
        )

    def keep(self, version: int | None = None) -> int:
        """Keep a version readable until it is let go, however many newer ones there will be.

        Args:
            version: which one; None: the newest.

        Returns:
            The version.

        Raises:
            UnknownVersion: it is not readable.
        """
        chosen = self.version if version is None else version
        self._workspace.retention.keep(self._id, self.name, chosen, actor())
        return chosen

    def let_go(self, version: int) -> None:
        """Leave a version that was kept to the retention policy again."""
        self._workspace.retention.let_go(self._id, version)

    def kept(self) -> list[int]:
        """Return the versions that are kept on request."""
        return self._workspace.retention.kept(self._id)

    def status(self) -> DatasetStatus:
        """Return where it is: its arm, every arm that holds its newest version, and whether another engine moved it."""
        return dataset_status(self.record, self._workspace.ledger)

    def history(self, most: int = 100) -> list[Transaction]:
        """Return its transactions, newest first."""
        return History(self._workspace.database).transactions({self._id: self.name}, dataset_id=self._id, most=most)

    def __repr__(self) -> str:
        return f"Dataset({self.name!r})"


def actor() -> str:
    """Return who acts, for the audit log: the user of this process."""
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"
