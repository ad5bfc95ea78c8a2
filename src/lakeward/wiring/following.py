"""The sources of a workspace whose changes are followed: begun, read by a worker, looked at, and given up."""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass

from lakeward.access.guard import require
from lakeward.compute.scratch import Scratch
from lakeward.control.follows import FollowedRelation, FollowedSource
from lakeward.control.idempotency import IdempotencyKeys
from lakeward.control.sources import SourceRecord
from lakeward.errors import ConflictError, LakewardError, NameTaken, UnknownObject, UsageError
from lakeward.sources.allowed import Allowed
from lakeward.sources.change_log import ChangeLog, LogState
from lakeward.sources.known_change_logs import change_log_of
from lakeward.wiring.actor import actor
from lakeward.wiring.counted_batches import Progress
from lakeward.wiring.follow_plan import FollowPlan, FollowPlanning, FollowRequest
from lakeward.wiring.follow_worker import Followed, FollowRooms, FollowWorker
from lakeward.wiring.sources import checked_options
from lakeward.wiring.sync_plan import SyncRequest, TablePlan
from lakeward.wiring.syncing import SyncedSources

_NOT_IN_LABEL = re.compile(r"[^a-z0-9]+")


@dataclass(frozen=True)
class FollowState:
    """How a followed source stands.

    Args:
        followed: as it is kept here.
        tables: which, and up to when they are here.
        datasets: the name of each table's dataset.
        log: as the source has it; None: it was not begun, or the source does not answer.
        trouble: why the source does not answer.
        limit_bytes: above which lag is warned of.
    """

    followed: FollowedSource
    tables: tuple[FollowedRelation, ...]
    datasets: tuple[str, ...]
    log: LogState | None
    trouble: str | None
    limit_bytes: int

    @property
    def line(self) -> str:
        """What is said of it where datasets are looked at."""
        what = f"source {self.followed.source}: {len(self.tables)} followed"
        if self.log is None or self.warning is not None:
            return f"{what}; {self.warning or 'its log was not begun'}"
        reads = "somebody follows" if self.log.active else "nobody follows now"
        return f"{what}; {reads}, and it keeps {self.log.lag_bytes:,} bytes of its log"

    def to_json(self) -> dict[str, object]:
        """Return it as `lakeward status --output json` prints it."""
        return {
            "source": self.followed.source,
            "datasets": list(self.datasets),
            "lag_bytes": None if self.log is None else self.log.lag_bytes,
            "active": self.log is not None and self.log.active,
            "warning": self.warning,
        }

    @property
    def warning(self) -> str | None:
        """What somebody should look at; None: nothing."""
        if self.trouble is not None:
            return f"it does not answer: {self.trouble}"
        if self.log is None:
            return None
        if self.log.lost:
            return "its log was lost: what was not read is gone, and a new copy is needed"
        if self.log.lag_bytes > self.limit_bytes:
            return f"it keeps {self.log.lag_bytes:,} bytes of its log, more than sources.lag_limit_bytes"
        return None


class FollowedSources(SyncedSources):
    """The sources of one workspace, their syncs, and what is followed of them.

    Args:
        rooms: of the workspace.
        allowed: what sources may reach.
        jobs: how many tables of one sync are read and written at a time.
        keys: those of requests.
    """

    def __init__(self, rooms: FollowRooms, allowed: Allowed, jobs: int, keys: IdempotencyKeys) -> None:
        super().__init__(rooms.sources, rooms.tree, rooms.storage, allowed, jobs, keys, rooms.scratch)
        self._rooms = rooms
        self._follows = rooms.follows

    def plan_sync(self, request: SyncRequest, progress: Progress | None = None) -> list[TablePlan]:
        """Check a sync; see there.

        Raises:
            UsageError: a dataset is fed by a log, which would not go on from what a sync writes.
        """
        plans = super().plan_sync(request, progress)
        for plan in plans:
            existing = plan.declaration.existing
            if existing is not None and (source := self._follows.follower(existing.id)) is not None:
                raise UsageError(
                    f"dataset {existing.name} follows {plan.table.full_name} of source {source}",
                    safe=f"the dataset is unchanged at version {existing.head_version}",
                    next_step="sync into another schema: --into catalog.schema; or `lakeward source unfollow "
                    f"{source} --table {plan.table.full_name}` first",
                    dataset=existing.name,
                )
        return plans

    def plan_follow(self, request: FollowRequest) -> FollowPlan:
        """Check what following would do, and ask the source for its tables. Changes nothing.

        Raises:
            UnknownObject: no such source, table or mode, or a source that does not tell its changes.
            SourceError: the source does not answer.
            SchemaError, ColumnMismatch, NameTaken, UsageError: see `FollowPlanning.plan`.
        """
        require("source.follow")
        record = self.find(request.source)
        change_log_of(record.type)
        followed = next(iter(self._follows.all(record.name)), None)
        relations = self._follows.tables(record.name)
        planning = FollowPlanning(self._tree, record, followed, relations, request)
        with self.connected(record) as connector:
            found = connector.discover()
        return planning.plan(found, self._tables.feed, self._storage.flags.mode_of_new(planning.mode.writer))

    def follow(
        self,
        request: FollowRequest,
        *,
        once: bool = False,
        stop: threading.Event | None = None,
        say: Callable[[str], None] = lambda text: None,
        progress: Progress | None = None,
    ) -> Followed:
        """Follow a source: copy tables that are new, then write their changes as they are committed there.

        Args:
            request: what, and how.
            once: end when what the source had logged at the start is here; else it ends by `stop` alone.
            stop: set by another thread, ends it after the batch under way.
            say: is told what people should know: copies, rates, and what is tried again.
            progress: is told the rows so far.

        Raises:
            SourceError: the log is lost, or somebody else reads it. A source that is being restarted is waited for.
            SchemaError, ValueRefused, Diverged: a person is needed. What was before is here, and nothing is lost.
            What `plan_follow` raises.
        """
        source = self.find(request.source)
        plan, datasets = self._carried_out(request)
        new = {each.table.full_name: datasets[each.table.full_name] for each in plan.tables if not each.known}
        if new:
            self._follows.begin(source.name, _label(source.name), plan.mode.name, new, actor())
        (followed,) = self._follows.all(source.name)
        with closing(Scratch(self._rooms.scratch)) as scratch, self._log(source, followed) as change_log:
            worker = FollowWorker(
                self._rooms, source.name, plan, change_log, scratch.path, stop or threading.Event(), say, progress
            )
            return worker.run(once)

    def _carried_out(self, request: FollowRequest) -> tuple[FollowPlan, dict[str, int]]:
        """Return the plan, and the dataset of each table, made if it is missing."""
        for last in (False, True):
            plan = self.plan_follow(request)
            try:
                return plan, {
                    each.table.full_name: each.plan.declaration.carry_out(self._tree, actor()).id
                    for each in plan.tables
                }
            except NameTaken:
                # Somebody else begins to follow it in this moment, and has made it.
                if last:
                    raise
        raise AssertionError("the last one returns or raises")

    def followed(self) -> list[FollowState]:
        """Return how each followed source stands, by asking it."""
        require("source.read")
        return [self._state(each) for each in self._follows.all()]

    def unfollow(self, name: str, tables: Sequence[str] = (), *, abandon: bool = False) -> str | None:
        """Give up following a source, or some of its tables. Datasets stay as they are.

        Args:
            name: the source's.
            tables: which; none: all, and with them what the source keeps for us.
            abandon: forget it though the source does not answer.

        Returns:
            What is left at the source, which it keeps its log for; None: nothing.

        Raises:
            UsageError: it is not followed.
            UnknownObject: a table is not followed.
            ConflictError: somebody follows it now.
            SourceError: the source does not answer.
        """
        require("source.unfollow")
        record = self.find(name)
        followed = next(iter(self._follows.all(name)), None)
        if followed is None:
            raise UsageError(f"source {name} is not followed", safe="nothing was changed")
        there = [each.relation for each in self._follows.tables(name)]
        chosen = _chosen(there, tables, name) or there
        left = None
        whole = set(chosen) == set(there)
        with self._log(record, followed) as change_log:
            try:
                self._give_up(record, change_log, chosen, whole)
            except LakewardError:
                if not abandon:
                    raise
                left = followed.label
        self._follows.end(name, chosen, whole, actor())
        return left

    def remove(self, name: str) -> None:
        """Forget a source; see `Sources.remove`.

        Raises:
            UnknownObject: there is none.
            UsageError: it is followed, and keeps its log for us.
        """
        self.find(name)
        if self._follows.all(name):
            raise UsageError(
                f"source {name} is followed, and would keep its log for ever",
                safe="nothing was changed",
                next_step=f"lakeward source unfollow {name}",
                source=name,
            )
        super().remove(name)

    def _state(self, followed: FollowedSource) -> FollowState:
        tables = tuple(self._follows.tables(followed.source))
        names = tuple(self._tree.by_id(each.dataset_id, dropped=True).name for each in tables)
        log, trouble = None, None
        try:
            with self._log(self.find(followed.source), followed) as change_log:
                log = change_log.state()
        except LakewardError as error:
            trouble = error.message
        return FollowState(followed, tables, names, log, trouble, self._rooms.limits.lag_bytes)

    @staticmethod
    def _give_up(record: SourceRecord, change_log: ChangeLog, tables: Sequence[str], whole: bool) -> None:
        state = change_log.state()
        if not whole:
            change_log.forget(tables)
            return
        if state is not None and state.active:
            raise ConflictError(
                f"the log {state.name} of source {record.name} is being read",
                safe="nothing was changed",
                next_step="end `lakeward source follow` first",
                source=record.name,
            )
        change_log.drop()

    @contextmanager
    def _log(self, record: SourceRecord, followed: FollowedSource) -> Iterator[ChangeLog]:
        options = checked_options(record.type, record.options)
        made = change_log_of(record.type).made(options, self.allowed, followed.label)
        try:
            yield made
        finally:
            made.close()


def _label(source: str) -> str:
    """Return what a log is known by at its source. By chance in part: other workspaces may follow the same one."""
    return f"{_NOT_IN_LABEL.sub('_', source.lower())[:24]}_{secrets.token_hex(4)}"


def _chosen(there: Sequence[str], wanted: Sequence[str], source: str) -> list[str]:
    chosen = []
    for name in wanted:
        fits = [each for each in there if name in (each, each.partition(".")[2])]
        if len(fits) != 1:
            raise UnknownObject(
                f"source {source} has no followed table {name!r}; there are {', '.join(there)}",
                safe="nothing was changed",
                source=source,
                table=name,
            )
        chosen.append(fits[0])
    return chosen
