"""Syncs: tables of a source into datasets, all from one moment of it and visible at one moment here.

The source is asked once every dataset is held, so that nobody writes between a position and the rows that follow it.
What was read, up to where, is decided together with the rows: a crash skips nothing, and repeats nothing.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pyarrow as pa

from lakeward.access.guard import require
from lakeward.control.idempotency import IdempotencyKeys
from lakeward.control.records import Fed, FileRead, OpenTransaction
from lakeward.control.sources import SourceTables
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ConflictError, Contended, LakewardError, StorageError, UsageError
from lakeward.happenings import told
from lakeward.sources.allowed import Allowed
from lakeward.sources.connector import NEW, Position, ReadWindow, TableRead
from lakeward.sources.file_set import RejectsOf
from lakeward.storage.facade import Storage
from lakeward.storage.requests import Output, WriteResult
from lakeward.types.conform import to_reader
from lakeward.wiring.actor import actor
from lakeward.wiring.counted_batches import CountedBatches, Progress
from lakeward.wiring.moment import Moment
from lakeward.wiring.rejected import QUARANTINE, Apart, Tally, check_on_error
from lakeward.wiring.sources import Sources
from lakeward.wiring.sync_modes import MODES, sync_mode
from lakeward.wiring.sync_plan import (
    SyncRequest,
    TablePlan,
    check_fed,
    choose_tables,
    dataset_names,
    plan_table,
    text_of,
)


@dataclass(frozen=True)
class TableSynced:
    """What a sync did to one dataset; `rows_read` is also the number of rows that were written, see `WriteResult`.

    `files` are the paths of those that were read, of a source of files; `left` says what the next sync will read.
    `rows_rejected` is the number of records that were left out, which are in the dataset `rejected_to`.
    """

    source: str
    table: str
    mode: str
    created: bool
    rows_read: int
    written: WriteResult
    files: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    rows_rejected: int = 0
    rejected_to: str | None = None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        own = {name: value for name, value in vars(self).items() if name != "written"}
        return {**own, **self.written.to_json()}


class SyncedSources(Sources):
    """The sources of one workspace, and their syncs.

    Args:
        tables: where sources are stored, and what feeds each dataset.
        tree: of the workspace.
        storage: writes.
        allowed: what sources may reach.
        jobs: how many tables are read at a time.
        keys: of requests, by which a run knows what it has done.
        scratch: where records wait that are rejected.
    """

    def __init__(
        self,
        tables: SourceTables,
        tree: Tree,
        storage: Storage,
        allowed: Allowed,
        jobs: int,
        keys: IdempotencyKeys,
        scratch: Path,
    ) -> None:
        super().__init__(tables, allowed)
        self._keys = keys
        self._scratch = scratch
        self._jobs = jobs
        self._tree = tree
        self._storage = storage

    def plan_sync(self, request: SyncRequest, progress: Progress | None = None) -> list[TablePlan]:
        """Check a sync, and ask the source for its tables. Changes nothing.

        Raises:
            UnknownObject: no such source, table or mode.
            SourceError: the source does not answer.
            SchemaError, ColumnMismatch, NameTaken, UsageError: see `plan_table`.
        """
        require("source.sync")
        mode = sync_mode(request.mode)
        record = self.find(request.source)
        made_as = self._storage.flags.mode_of_new(mode.writer)
        plans: list[TablePlan] = []
        with self.connected(record) as connector:
            if request.cursor is not None and not connector.cursors:
                raise UsageError(f"a source of type {record.type} has no cursors", safe="nothing was changed")
            limit = check_on_error(request.on_error, request.max_rejected, mode.name, deletes_others=False)
            if request.on_error == QUARANTINE and not connector.rejects:
                raise UsageError(
                    f"a source of type {record.type} has no records that could be rejected, but values of its types",
                    safe="nothing was changed",
                    next_step="leave --on-error out; --text COLUMN reads a column as the source prints it",
                )
            chosen = choose_tables(record, connector.discover(), request.tables, request.exclude)
            names, texts = dataset_names(request, chosen), text_of(request, chosen)
            for table, name, text in zip(chosen, names, texts, strict=True):
                asked = replace(request, text=text)
                existing = self._tree.find(name)
                feed = self._tables.feed(existing.id) if existing is not None else None
                if existing is None:
                    tally = Tally(name, limit) if request.on_error == QUARANTINE else None
                    told = partial(_tell, progress)
                    rejects = tally.rejects_of if tally is not None else None
                    table = connector.described(table, request.columns, told, text, rejects)
                    if tally is not None:
                        tally.check(table.rows or 0)
                plans.append(plan_table(self._tree, asked, mode, table, name, feed, made_as))
        return plans

    @told("sync", lambda _, request, progress=None: {"source": request.source})
    def sync(self, request: SyncRequest, progress: Progress | None = None) -> list[TableSynced]:
        """Sync; the rows of all tables become visible at once, or none do. In a run each table is for itself.

        Raises:
            ValueRefused: a value has no form in its column's type; every dataset is unchanged.
            ConflictError: somebody else holds or wrote a dataset.
            EmptyReplace: a table has no rows any more, and that was not asked for.
            What `plan_sync` raises. In a run the first error, when all tables were tried; its notes name the others.
        """
        plans = self.plan_sync(request, progress)
        if request.run is None:
            return self._together(request, plans, progress)
        synced: list[TableSynced] = []
        failed: list[tuple[str, LakewardError]] = []
        for plan in plans:
            try:
                done = self._done(plan, request.run)
                synced += [done] if done is not None else self._together(request, [plan], progress)
            except LakewardError as error:
                failed.append((plan.table.full_name, error))
        if failed:
            raise _first_of(failed, synced, request.run)
        return synced

    def _done(self, plan: TablePlan, run: str) -> TableSynced | None:
        """Return what a run of this name did to a table already; None: nothing."""
        existing = plan.declaration.existing
        found = self._keys.of([(existing.id, _key(plan, run))]) if existing is not None else []
        if not found:
            return None
        written = WriteResult.recalled(found[0].remembered.result, plan.declaration.name)
        return TableSynced(plan.source, plan.table.full_name, plan.mode.name, False, written.rows_in, written)

    def _together(
        self, request: SyncRequest, plans: Sequence[TablePlan], progress: Progress | None
    ) -> list[TableSynced]:
        if progress is not None and len(plans) > 1:
            progress = _Summed(plans, progress)
        records = [plan.declaration.carry_out(self._tree, actor()) for plan in plans]
        with ExitStack() as stack:
            connector = stack.enter_context(self.connected(self.find(request.source)))
            moment = stack.enter_context(Moment(connector, min(self._jobs, len(plans))))
            syncs = [
                _TableSync(plan, record, self._tables, moment, request, progress, self._scratch)
                for plan, record in zip(plans, records, strict=True)
            ]
            outputs = [each.output() for each in syncs]
            rejected = [each.rejected_output(self._tree) for each in syncs if each.apart is not None]
            try:
                # What was rejected is known once the rows were read.
                width = self._jobs if not rejected else 1
                build = self._storage.build([*outputs, *rejected], writer=plans[0].mode.writer, width=width)
            except Exception as error:
                # On its way through other libraries an error of the source may have kept only its text.
                if moment.raised is not None and moment.raised is not error:
                    raise moment.raised from error
                raise
        written = {each.dataset: each for each in build.transactions}
        return [each.result(written[each.record.name]) for each in syncs]


def _key(plan: TablePlan, run: str) -> str:
    """Return the key by which a table that a run has done is known; it is committed with the table's rows."""
    return f"sync.{plan.mode.name} {run}"


def _first_of(failed: Sequence[tuple[str, LakewardError]], synced: Sequence[TableSynced], run: str) -> LakewardError:
    """Return the first error, with what became of the other tables."""
    (_, first), *others = failed
    first.__notes__ = [f"table {name} failed, too: {error.message}" for name, error in others]
    first.__notes__.append(
        f"{len(synced)} of {len(synced) + len(failed)} tables are done, and stay so. Repeat the command with the same "
        f"--run {run} for the others"
    )
    first.fields.update(failed=[name for name, _ in failed], synced=[each.table for each in synced])
    return first


def _tell(progress: Progress | None, what: str) -> None:
    if progress is not None:
        progress(what, 0, None)


class _Summed:
    """Tells the rows of several tables as one number, and by one thread at a time."""

    def __init__(self, plans: Sequence[TablePlan], progress: Progress) -> None:
        self._what = f"syncing {len(plans)} tables"
        self._progress = progress
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}
        totals = [plan.table.rows if plan.mode.whole else None for plan in plans]
        self._total = None if None in totals else sum(filter(None, totals))

    def __call__(self, what: str, rows: int, total: int | None) -> None:
        with self._lock:
            self._rows[what] = rows
            self._progress(self._what, sum(self._rows.values()), self._total)


class _TableSync:
    """One table on its way to its dataset."""

    def __init__(
        self,
        plan: TablePlan,
        record: DatasetRecord,
        tables: SourceTables,
        moment: Moment,
        request: SyncRequest,
        progress: Progress | None,
        scratch: Path,
    ) -> None:
        self.record = record
        self.apart = Apart(self._reader, record.name, plan.limit, scratch) if plan.rejected is not None else None
        self._plan = plan
        self._tables = tables
        self._moment = moment
        self._request = request
        self._progress = progress
        self._counted: CountedBatches | None = None
        self._read: TableRead | None = None
        self._after: Position | None = None

    def output(self) -> Output:
        return Output(
            self.record,
            self._plan.verb,
            self._rows,
            allow_empty=self._request.allow_empty or self._plan.first,
            opened=self._check_held,
            fed=self._fed,
            give_up=self._moment.give_up,
            idempotency_key=self._idempotency_key,
        )

    def rejected_output(self, tree: Tree) -> Output:
        """Return what brings the records that are left out to their dataset, which is made if it is missing."""
        assert self.apart is not None and self._plan.rejected is not None, "some may be left out"
        rejected = self._plan.rejected.carry_out(tree, actor())
        return Output(rejected, "append", self.apart.rejected_rows, idempotency_key=self._idempotency_key)

    @property
    def _idempotency_key(self) -> str | None:
        return _key(self._plan, self._request.run) if self._request.run is not None else None

    def result(self, written: WriteResult) -> TableSynced:
        """Return what the caller is told; every row that was read was written, or is said to have been there."""
        read = self._counted.rows if self._counted is not None else 0
        if read != written.rows_in:
            raise StorageError(
                f"dataset {written.dataset}: {read} rows were read and {written.rows_in} written",
                dataset=written.dataset,
                rows_read=read,
                rows_written=written.rows_in,
            )
        plan = self._plan
        created = plan.declaration.existing is None
        files = tuple(file.path for file in self._read.files()) if self._read is not None else ()
        left = tuple(self._read.left()) if self._read is not None else ()
        synced = TableSynced(plan.source, plan.table.full_name, plan.mode.name, created, read, written, files, left)
        if self.apart is None or plan.rejected is None:
            return synced
        count = self.apart.rejected
        return replace(synced, rows_rejected=count, rejected_to=plan.rejected.name if count else None)

    def _fed(self) -> Fed:
        read, plan = self._read, self._plan
        assert read is not None, "rows are read before they are decided"
        # A full sync reads everything anyway; but what others go on from must be of this table.
        files = tuple(read.files())
        alone = (not plan.mode.whole or not read.follows) and (bool(files) or read.position != self._after)
        # That others' rows were looked at is told by a version, also where they were the table's.
        alone = alone or self._request.overwrite
        return Fed(plan.source, plan.table.full_name, read.position, alone, plan.mode.whole, (*read.touched, *files))

    def _seen(self) -> dict[str, FileRead]:
        return self._tables.files(self.record.id)

    def _check_held(self, transaction: OpenTransaction) -> None:
        """Look once more, now that nobody else can write: the plan was made before."""
        plan = self._plan
        if plan.first and transaction.parent_version > 0:
            raise Contended(
                f"dataset {self.record.name} got its first version while its sync was prepared",
                safe=f"the dataset is unchanged at version {transaction.parent_version}",
                next_step="repeat the sync",
                dataset=self.record.name,
            )
        feed = self._tables.feed(self.record.id)
        check_fed(self.record.name, transaction.parent_version, feed, plan.source, plan.table.full_name)
        if plan.mode.whole and not self._request.overwrite:
            self._check_unwritten(transaction)

    def _check_unwritten(self, transaction: OpenTransaction) -> None:
        """Refuse to take away what somebody else has written."""
        written = self._tables.written_by_others(
            self.record.id, [mode.writer for mode in MODES.values()], self._plan.mode.writer
        )
        if written is not None:
            version, writer = written
            raise ConflictError(
                f"dataset {self.record.name} was changed by {writer} at version {version}, since its last full sync: "
                f"another one would take that away",
                safe=f"the dataset is unchanged at version {transaction.parent_version}",
                next_step="add --overwrite, so that it becomes what the table is; or sync into another schema: "
                "--into catalog.schema",
                dataset=self.record.name,
                version=version,
                writer=writer,
            )

    def _rows(self) -> pa.RecordBatchReader:
        plan = self._plan
        feed = self._tables.feed(self.record.id)
        after = feed.synced if feed is not None else None
        if plan.mode.what == NEW and not plan.keyed and feed is not None and after is None:
            raise UsageError(
                f"dataset {self.record.name} has rows of {plan.table.full_name}, and nothing tells up to where",
                safe="the dataset is unchanged",
                next_step="sync it into a new dataset: --into catalog.schema",
                dataset=self.record.name,
            )
        self._after = after
        opened = self._reader(None) if self.apart is None else self.apart.good_rows()
        total = plan.table.rows if plan.mode.whole else None
        self._counted = CountedBatches(opened, f"syncing {self.record.name}", total, self._progress)
        rows = pa.RecordBatchReader.from_batches(opened.schema, self._counted)
        return to_reader(rows, self.record.schema, dataset=self.record.name)

    def _reader(self, rejects: RejectsOf | None) -> pa.RecordBatchReader:
        plan = self._plan
        self._read = self._moment.read(
            ReadWindow(
                plan.table,
                plan.types,
                plan.mode.what,
                self._after,
                plan.keyed,
                self._seen,
                plan.cursor,
                plan.text,
                plan.declaration.schema.primary_key,
                rejects,
            )
        )
        return self._read.rows
