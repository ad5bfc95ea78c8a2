"""The handle that the public API returns: a workspace. That of its datasets is in `dataset.py`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Unpack

from lakeward.access.guard import require
from lakeward.control.audit import note
from lakeward.control.history import History, Recoverable
from lakeward.control.records import Transaction
from lakeward.migration.bulk import BulkFlip
from lakeward.migration.comparisons import Comparisons
from lakeward.migration.flip import Flip, Tell
from lakeward.pipelines.one_off import RunRequest
from lakeward.pipelines.plan import Plan
from lakeward.pipelines.progress import Progress
from lakeward.storage.foreign import Restored
from lakeward.storage.maintenance import DEFAULT_SECONDS, MaintenanceReport
from lakeward.storage.recovery import Recovered
from lakeward.storage.requests import BuildResult, WriteResult
from lakeward.types.logical import LogicalType
from lakeward.types.partitioning import declare_partitions
from lakeward.types.schema import Schema
from lakeward.wiring.access import Access
from lakeward.wiring.actor import actor
from lakeward.wiring.adoption import Adoption
from lakeward.wiring.counted_batches import Progress as FileProgress
from lakeward.wiring.dataset import Dataset
from lakeward.wiring.declaring import Declaration, declare
from lakeward.wiring.flipping import bulk_flip
from lakeward.wiring.importing import ImportHow, Importing, ImportPlan, ImportRequest, ImportResult, Paths
from lakeward.wiring.models import ModelsByName
from lakeward.wiring.overview import DatasetStatus, dataset_status
from lakeward.wiring.parts import Parts
from lakeward.wiring.pin import Pin, pin
from lakeward.wiring.rooms import Rooms
from lakeward.wiring.tree import TreeOfNames


class Workspace(TreeOfNames, ModelsByName):
    """An open workspace: datasets, pipelines, and the ledger that coordinates them. Made by `lakeward.open`.

    It is safe to use from several threads. Close it, or use it as a context manager: the embedded server stops with its
    last user.
    """

    def __init__(self, parts: Parts, close: Callable[[], None]) -> None:
        TreeOfNames.__init__(self, parts.names)
        ModelsByName.__init__(self, parts.models)
        self.settings = parts.settings
        self.database = parts.database
        self.tree = parts.tree
        self.ledger = parts.ledger
        self.storage = parts.storage
        self.replication = parts.replication
        self.moving, self.moves = parts.moving, parts.moves
        self.flags = parts.flags
        self.adopting = Adoption(parts.adopting)
        self.access = Access(parts.database, parts.tree)
        self._flips, self.flips = parts.flips, parts.flips.flips
        self.comparisons = Comparisons(parts.flips, actor)
        self.recovery, self.retention, self.upkeep = parts.recovery, parts.retention, parts.upkeep
        self.pipelines, self.sources = parts.pipelines, parts.sources
        self.sql, self._metrics = parts.queries.sql, parts.metrics
        self._importing = Importing(
            parts.tree, parts.storage, parts.sources.allowed, parts.scratch, History(parts.database)
        )
        self._rooms = Rooms.of(parts)
        self._close = close

    # Flips -----------------------------------------------------------------------------------------------------------

    def flip(self, name: str, tell: Tell | None = None) -> Flip:
        """Return the flip of a dataset: what brings it to the other arm, stage by stage, and back.

        Args:
            name: of the dataset.
            tell: is told of progress: the stage, rows so far, and of how many.

        Raises:
            UnknownObject: there is no such dataset.
        """
        return Flip(self._flips, self.tree.dataset(name), actor(), tell)

    def bulk_flip(self, tell: Tell | None = None) -> BulkFlip:
        """Return what flips many datasets, consumers before producers: see `BulkFlip.choose` and `BulkFlip.run`."""
        return bulk_flip(self.tree, self.pipelines, lambda record: Flip(self._flips, record, actor(), tell))

    # Datasets --------------------------------------------------------------------------------------------------------

    def create_dataset(
        self,
        name: str,
        columns: Mapping[str, str | LogicalType],
        primary_key: Sequence[str] = (),
        arm: str | None = None,
        partition_by: Sequence[str] = (),
    ) -> Dataset:
        """Make a dataset without rows; its catalog and schema are made where they are missing.

        Args:
            name: `catalog.schema.dataset`; double quotes around a level that holds a dot.
            columns: type texts by column name, in order: `long`, `string`, `decimal(18,4)`, `list<int>` …
            primary_key: names of the key columns; may be empty.
            arm: where its rows will live: `postgres` or `iceberg`, on it alone; None: as the flag of the writer
                `ingest.api` says, by default in Postgres.
            partition_by: how its Iceberg table is partitioned when that is made: columns, or `year`, `month`, `day`,
                `hour`, `bucket` and `truncate` of one, as in `["bucket(16, id)", "day(ts)"]`. On the Postgres arm it
                is kept, and has no effect.

        Raises:
            NameTaken, InvalidName, SchemaError, UnknownObject: see there.

        Example:
            >>> orders = ws.create_dataset("main.sales.orders", {"id": "long", "note": "string"}, ["id"])
            >>> orders.arm
            'postgres'
        """
        schema = Schema.declare(columns, primary_key, name)
        parts = declare_partitions(partition_by, schema, name)
        mode = self.storage.flags.mode_of_new("ingest.api") if arm is None else None
        made = self.tree.create_dataset(
            name, schema, arm=arm or "postgres", actor=actor(), partition_by=parts, mode=mode
        )
        return Dataset(self._rooms, made)

    def dataset(self, name: str) -> Dataset:
        """Return a dataset by its full name.

        Raises:
            UnknownObject: there is none, with the nearest names that there are.
        """
        return Dataset(self._rooms, self.tree.dataset(name))

    def datasets(self) -> list[Dataset]:
        """Return every dataset, ordered by name."""
        return [Dataset(self._rooms, record) for record in self.tree.datasets()]

    def declare_dataset(
        self,
        name: str,
        columns: Mapping[str, str | LogicalType],
        primary_key: Sequence[str] = (),
        arm: str | None = None,
        partition_by: Sequence[str] | None = None,
    ) -> Declaration:
        """Check a declaration as `create_dataset` would; a dataset that is as declared is fine. Changes nothing.

        Raises:
            NameTaken: the dataset exists and is another one.
        """
        mode = self.storage.flags.mode_of_new("ingest.api")
        return declare(self.tree, name, columns, primary_key, arm, partition_by, mode=mode)

    def ensure_dataset(self, declaration: Declaration) -> Dataset:
        """Return the dataset that was declared, made if it is missing."""
        return Dataset(self._rooms, declaration.carry_out(self.tree, actor()))

    def plan_import(
        self, name: str, path: Paths, progress: FileProgress | None = None, **how: Unpack[ImportHow]
    ) -> ImportPlan:
        """Check what `import_file` would do, reading all files if the dataset is new. Changes nothing."""
        return self._importing.plan_import(ImportRequest(name, path, **how), progress)

    def run_import(self, plan: ImportPlan, progress: FileProgress | None = None) -> ImportResult:
        """Carry out a planned import: all rows become visible at once, or none."""
        return self._importing.run_import(plan, actor(), progress)

    def import_file(
        self, name: str, path: Paths, progress: FileProgress | None = None, **how: Unpack[ImportHow]
    ) -> ImportResult:
        """Import files into a dataset, which is made if it is missing: all rows of all of them as one version.

        Args:
            name: the dataset's full name.
            path: a file, folder, pattern of names or `s3://` location, or several; suffixes say how they are read.
            progress: is told what is done and how many rows so far.
            how: see `ImportRequest`: `columns`, `primary_key`, `arm`, `mode`, `create`, `format`, `options` …

        Raises:
            SourceFileError: a file is not what it claims to be, with line and column; the dataset is unchanged.
            NameTaken: the dataset exists, and columns, key or arm were declared that it does not have.
        """
        return self.run_import(self.plan_import(name, path, progress, **how), progress)

    def pin(self, *names: str) -> Pin:
        """Take one consistent set of versions of several datasets, to read from.

        Args:
            names: which; none: every dataset.

        Raises:
            UnknownObject: one of them is not there.
        """
        return pin(self.tree, self.ledger, self.storage, names)

    def status(self) -> list[DatasetStatus]:
        """Return where every dataset is, by name."""
        records, places = self.tree.datasets(), self.moves.places.all()
        return [dataset_status(each, self.replication, places[each.id]) for each in records if each.id in places]

    def metrics(self, days: int | None = None) -> dict[str, int]:
        """Return what this process has counted, by names as Prometheus writes them; or all, in the last `days`."""
        return self._metrics.values(days)

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

    def build(
        self,
        *names: str,
        select: Sequence[str] = (),
        full: bool = False,
        jobs: int | None = None,
        fail_fast: bool = False,
        progress: Progress | None = None,
    ) -> list[BuildResult]:
        """Run applied pipelines in the order of their datasets, and leave alone those whose outputs are up to date.

        One that fails keeps those from being built that read what it writes, and no others: when all have ended, its
        error is raised. What was built stays; `ws.pipelines.build_all` returns it together with every error.

        Args:
            names: which; none: all of them, unless some are selected.
            select: more of them: `+name` with all upstream, `name+` with all downstream, `tag:x`.
            full: run also those that are up to date. A query that depends on now or on chance needs it.
            jobs: how many are built at a time, where they don't read one another; None: the setting `build.jobs`.
            fail_fast: start no other one when one has failed.
            progress: is told how many rows of which output were computed so far, by one thread at a time.

        Returns:
            One result per pipeline, each after those that it reads, by name where the order is free.

        Raises:
            LakewardError: a pipeline failed; its outputs are unchanged. If several did, it is the error of the first in
                that order. The others, and what was skipped, are its notes and in its fields.
        """
        return self.pipelines.build(
            list(names) or None, select=select, full=full, jobs=jobs, fail_fast=fail_fast, progress=progress
        )

    def run(
        self,
        sql: str,
        into: str,
        sources: Mapping[str, str] | None = None,
        strategy: str | None = None,
        primary_key: Sequence[str] = (),
        arm: str | None = None,
        *,
        allow_empty: bool = False,
        where: str | None = None,
        rest: str | None = None,
        progress: Progress | None = None,
    ) -> BuildResult:
        """Run one query once into a dataset, which is made if it is missing. No project is needed, nothing is applied.

        Args:
            sql: one SELECT over `sources`, and over datasets by their full names: `from main.raw.orders`.
            into, sources, strategy, primary_key, arm, allow_empty, where, rest: see `RunRequest`.
            progress: is told how many rows were computed so far.

        Raises:
            SqlError: the query is wrong, with its line and column.
            UsageError: the dataset has rows, and no strategy says what becomes of them.

        Example:
            >>> ws.run("select * from main.raw.orders where amount > 10", into="main.tmp.large")  # doctest: +SKIP
        """
        request = RunRequest(sql, into, sources or {}, strategy, primary_key, arm, allow_empty, where, rest)
        return self.pipelines.run(request, progress)

    # The ledger ------------------------------------------------------------------------------------------------------

    def recover(self) -> list[Recovered]:
        """Finish or remove what processes that died left behind; repeating it does nothing more."""
        require("ledger.recover")
        found = self.recovery.recover()
        for each in found:
            note(
                self.database,
                actor(),
                "ledger.recover",
                each.dataset,
                None,
                {"version": each.version, "outcome": each.outcome},
            )
        return found

    def recoverable(self) -> list[Recoverable]:
        """Return what `recover` would look at; changes nothing."""
        return History(self.database).recoverable({record.id: record.name for record in self.tree.datasets()})

    def adopt(self, name: str, renumber: bool = False, snapshot: int | None = None) -> WriteResult:
        """Take the rows that another engine left in a dataset's table as a new version; see `Dataset.adopt`."""
        return self.dataset(name).adopt(renumber, snapshot)

    def restore(self, name: str, snapshot: int | None = None) -> Restored:
        """Set a dataset's table back to our newest version; see `Dataset.restore`."""
        return self.dataset(name).restore(snapshot)

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

    def transactions(
        self, *, status: str | None = None, pipeline: str | None = None, before: int | None = None, most: int = 100
    ) -> list[Transaction]:
        """Return ledger rows of all datasets, or of a pipeline's, newest first; `before`: behind the one of that id."""
        names, past = {record.id: record.name for record in self.tree.datasets()}, History(self.database)
        return past.transactions(names, status=status, pipeline=pipeline, before=before, most=most)

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
