"""The worker that follows a source: copies what is new, then writes micro-batches until it is told to stop.

A position is decided with the rows up to it, and the source is told only afterwards. So a worker that is killed at any
moment reads again what was not decided, and each table leaves out what it has.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from lakeward.control.follows import FollowTables
from lakeward.control.sources import SourceTables
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ConflictError, LakewardError, SchemaError, SourceError, UsageError, ValueRefused
from lakeward.happenings import happening
from lakeward.sources.change_log import ChangeLog, Changes
from lakeward.sources.connector import Position
from lakeward.sources.net_changes import Netting
from lakeward.storage.facade import Storage
from lakeward.wiring.counted_batches import Progress
from lakeward.wiring.follow_batch import FedTable, MicroBatch, Writing
from lakeward.wiring.follow_copy import FirstCopy
from lakeward.wiring.follow_patience import Patience
from lakeward.wiring.follow_plan import FollowPlan
from lakeward.wiring.held_feed import HeldFeed

REPORT_SECONDS = 10.0
MAINTAIN_SECONDS = 900.0
LONGEST_WAIT = 1.0
"""Seconds after which a worker looks up at the latest, where nothing changes."""

log = logging.getLogger("lakeward.following")


@dataclass(frozen=True)
class FollowLimits:
    """When changes are written, and when there is something to warn of.

    Args:
        seconds, rows, bytes: whatever is reached first.
        lag_bytes: of the source's log.
    """

    seconds: float
    rows: int
    bytes: int
    lag_bytes: int


@dataclass(frozen=True)
class FollowRooms:
    """What a worker needs of the workspace.

    Args:
        tree: names and what they stand for.
        storage: writes.
        sources: what feeds each dataset.
        follows: what is followed.
        limits: see there.
        memory_limit: what DuckDB may use to net changes before it spills.
        scratch: makes a directory for what does not fit into memory, which goes when it is closed.
        maintain: expires old versions of datasets, by their names.
    """

    tree: Tree
    storage: Storage
    sources: SourceTables
    follows: FollowTables
    limits: FollowLimits
    memory_limit: str
    scratch: Path
    maintain: Callable[[list[str]], object]


@dataclass
class Followed:
    """What a worker did so far.

    Args:
        source: which one.
        changes: rows of the log that were written.
        batches: by so many builds.
        copied: rows that were there when following began.
        seconds: it took.
    """

    source: str
    changes: int = 0
    batches: int = 0
    copied: int = 0
    seconds: float = 0.0


class FollowWorker:
    """Follows one source.

    Args:
        rooms: of the workspace.
        source: its name.
        plan: what is followed.
        change_log: of the source.
        directory: for what does not fit into memory.
        stop: asks it to end, after the batch under way.
        say: is told what people should know.
        progress: is told the rows so far.
    """

    def __init__(
        self,
        rooms: FollowRooms,
        source: str,
        plan: FollowPlan,
        change_log: ChangeLog,
        directory: Path,
        stop: threading.Event,
        say: Callable[[str], None],
        progress: Progress | None,
    ) -> None:
        self._rooms = rooms
        self._plan = plan
        self._log = change_log
        self._directory = directory
        self._stop = stop
        self._say = say
        self._progress = progress
        self._patience = Patience(change_log)
        self._held = HeldFeed(rooms.sources, exact=not plan.mode.log)
        self._netting = Netting(directory, rooms.memory_limit)
        self._writing = Writing(rooms.storage, self._netting, self._held, plan.mode)
        self._end: Position | None = None
        self._furthest: Position | None = None
        self._started = self._reported = self._maintained = time.monotonic()
        self.done = Followed(source)

    def run(self, once: bool) -> Followed:
        """Follow until it is asked to stop; with `once`, until what the source had logged at the start is here.

        Raises:
            LakewardError: a person is needed. What was before stands.
        """
        try:
            while not self._stop.is_set():
                try:
                    if once and self._end is None:
                        self._end = self._log.end()
                    self._session()
                    break
                except LakewardError as error:
                    delay = self._patience.delay(error)
                    self._say(f"{error.message}; it is tried again in {delay:.1f} s")
                    self._stop.wait(delay)
        finally:
            self._netting.close()
            self.done.seconds = time.monotonic() - self._started
        return self.done

    def _session(self) -> None:
        self._copy()
        tables = self._tables()
        if not tables:
            raise UsageError(f"no table of source {self.done.source} is followed any more")
        wait = min(self._rooms.limits.seconds, LONGEST_WAIT)
        batch = MicroBatch(self._directory)
        changes = self._log.follow([each.follow.followed(each.after) for each in tables.values()], wait)
        try:
            with closing(changes):  # type: ignore[type-var]
                while True:
                    part = self._next(changes, batch, tables)
                    if part.upto is None and batch.whole and batch.rows:
                        # So that what fails within a large transaction does not keep those before it.
                        batch = self._written(batch, tables)
                    batch.add(part)
                    if part.upto is None:
                        if self._stop.is_set():
                            return
                        continue
                    ends = self._stop.is_set() or self._reached(part.upto)
                    if not batch.rows:
                        self._acknowledge(part.upto)
                    elif ends or self._due(batch):
                        batch = self._written(batch, tables)
                    if ends:
                        return
                    self._look_around(tables)
        finally:
            batch.close()

    def _next(self, changes: Iterator[Changes], batch: MicroBatch, tables: dict[str, FedTable]) -> Changes:
        """Return the next part of the log. If it can't be read before somebody mends it, what was before is written."""
        try:
            return next(changes)
        except (SchemaError, ValueRefused):
            if batch.whole and batch.rows:
                self._written(batch, tables)
            raise

    def _reached(self, upto: Position) -> bool:
        return self._end is not None and self._log.reaches(upto, self._end)

    def _due(self, batch: MicroBatch) -> bool:
        limits = self._rooms.limits
        return batch.age >= limits.seconds or batch.rows >= limits.rows or batch.size >= limits.bytes

    def _written(self, batch: MicroBatch, tables: dict[str, FedTable]) -> MicroBatch:
        """Write a batch of whole transactions, and return the next one."""
        upto = batch.upto
        assert upto is not None
        rows, names = batch.rows, list(batch.spools)
        with happening("follow.batch", source=self.done.source, rows=rows):
            built = self._rooms.storage.build(batch.outputs(tables, self._writing), writer=self._plan.mode.writer)
        committed = {each.dataset for each in built.transactions if each.committed}
        self._acknowledge(upto)
        batch.close()
        for name in names:
            if tables[name].record.name in committed:
                tables[name] = replace(tables[name], after=upto)
        self.done.changes += rows
        self.done.batches += 1
        if self._progress is not None:
            self._progress(f"following {self.done.source}", self.done.changes, None)
        return MicroBatch(self._directory)

    def _acknowledge(self, upto: Position) -> None:
        # What is read again after a failure, up to where it was before, is no progress.
        if self._furthest is None or not self._log.reaches(self._furthest, upto):
            self._furthest = upto
            self._patience.progressed()
        self._log.acknowledge(upto)

    def _copy(self) -> None:
        """Copy the tables whose dataset has none of the log yet."""
        there = {each.relation: each for each in self._rooms.follows.tables(self.done.source)}
        new = [
            (each, self._rooms.tree.by_id(there[each.table.full_name].dataset_id))
            for each in self._plan.tables
            if each.table.full_name in there and there[each.table.full_name].position is None
        ]
        if not new:
            return
        copy = FirstCopy(self._rooms.storage, self._log, self._held, self._progress)
        try:
            built = copy.run(new, self._plan.mode.writer)
        except ConflictError:
            there = {each.relation: each for each in self._rooms.follows.tables(self.done.source)}
            if any(there[each.table.full_name].position is None for each, _ in new if each.table.full_name in there):
                raise
            # Another process has copied them, and the log says that it follows them.
            return
        rows = sum(each.rows_in for each in built.transactions)
        self.done.copied += rows
        names = ", ".join(each.table.full_name for each, _ in new)
        self._say(f"{self.done.source}: copied {names}, {rows:,} rows; following their changes")

    def _tables(self) -> dict[str, FedTable]:
        follows = {each.table.full_name: each for each in self._plan.tables}
        return {
            each.relation: FedTable(follows[each.relation], self._record(each.dataset_id), each.position)
            for each in self._rooms.follows.tables(self.done.source)
            if each.relation in follows and each.position is not None
        }

    def _record(self, dataset_id: int) -> DatasetRecord:
        return self._rooms.tree.by_id(dataset_id)

    def _look_around(self, tables: dict[str, FedTable]) -> None:
        """Say how it stands, and tidy up, now and then."""
        now = time.monotonic()
        if now - self._reported >= REPORT_SECONDS:
            self._reported = now
            self._report()
        if now - self._maintained >= MAINTAIN_SECONDS:
            self._maintained = now
            try:
                self._rooms.maintain([each.record.name for each in tables.values()])
            except LakewardError as error:
                log.warning("what was followed could not be maintained now: %s", error)

    def _report(self) -> None:
        done = self.done
        rate = done.changes / max(time.monotonic() - self._started, 0.001)
        try:
            state = self._log.state()
        except SourceError:
            return
        lag = state.lag_bytes if state is not None else 0
        self._say(
            f"{done.source}: {done.changes:,} changes in {done.batches:,} batches, {rate:,.0f} changes/s; the source "
            f"keeps {lag:,} bytes of its log"
        )
        if lag > self._rooms.limits.lag_bytes:
            log.warning(
                "source %s keeps %s bytes of its log for this workspace, more than sources.lag_limit_bytes",
                done.source,
                f"{lag:,}",
            )
