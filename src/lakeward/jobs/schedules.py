"""What is queued without being asked for: by time, and when something that a pipeline reads has a new version.

Every worker looks. Which of them queues a job is decided by one statement, in the transaction that queues it: so each
time counts once, however many workers there are, and none is lost if the one that counted it dies. If a time came while
no worker ran, the job is queued once when one begins; of several such times, for the last one alone.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

import sqlalchemy

from lakeward.control.db import Queries
from lakeward.errors import LakewardError, SettingsError, UsageError
from lakeward.jobs.kind import JobOptions, checked_options
from lakeward.jobs.known_kinds import kind_named
from lakeward.jobs.queue import Jobs
from lakeward.pipelines.cron import ON_CHANGE, last_tick, next_tick
from lakeward.wiring.settings import LoadedSettings
from lakeward.wiring.workspace import Workspace

QUERIES = Queries.beside(__file__)

PIPELINE, SETTING = "pipeline ", "setting "

log = logging.getLogger("lakeward.jobs")


@dataclass(frozen=True)
class Schedule:
    """A job that is queued by itself.

    Args:
        name: whose it is: `pipeline NAME` or `setting NAME`.
        text: when, as cron has it, or `on_change`.
        kind, options: of the job.
    """

    name: str
    text: str
    kind: str
    options: JobOptions

    @property
    def by_time(self) -> bool:
        """Whether it has times."""
        return self.text != ON_CHANGE

    def next(self, now: datetime, zone: ZoneInfo) -> datetime | None:
        """Return when it is due next; None: that is not known."""
        return next_tick(self.text, now, zone) if self.by_time else None

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "name": self.name,
            "schedule": self.text,
            "kind": self.kind,
            "options": self.options.model_dump(mode="json"),
        }


def of_settings(loaded: LoadedSettings) -> list[Schedule]:
    """Return the schedules of the settings.

    Raises:
        SettingsError: a kind or an option is not known, with the file and the nearest name.
    """
    found = []
    for name, given in loaded.values.jobs.schedules.items():
        try:
            kind = kind_named(given.kind)
            found.append(Schedule(SETTING + name, given.cron, kind.name, checked_options(kind, given.options)))
        except UsageError as error:
            key = f"jobs.schedules.{name}"
            origin = loaded.sources.get(f"{key}.kind", "?")
            raise SettingsError(
                f"setting {key} (from {origin}): {error.message}",
                safe="nothing was queued",
                next_step=error.next_step,
                setting=key,
                source=origin,
            ) from None
    return found


class Schedules:
    """Queues what is due.

    Args:
        queue: of the workspace.
        now: tells the time; None: the database's clock, which is the same for all workers.

    Raises:
        SettingsError: see `of_settings`.
    """

    def __init__(self, queue: Jobs, now: Callable[[], datetime] | None = None) -> None:
        self._queue = queue
        self._workspace: Workspace = queue.workspace
        self._database = self._workspace.database
        self._now = now or self._of_database
        loaded = self._workspace.settings
        self.zone = ZoneInfo(loaded.values.jobs.time_zone)
        self._of_settings = of_settings(loaded)

    def all(self) -> list[Schedule]:
        """Return every schedule: those of the settings, and those of applied pipelines."""
        build = kind_named("build")
        of_pipelines = [
            Schedule(PIPELINE + name, text, build.name, checked_options(build, {"pipelines": [name]}))
            for name, text in self._workspace.pipelines.registry.schedules().items()
        ]
        return [*self._of_settings, *of_pipelines]

    def look(self) -> list[int]:
        """Queue what is due by time, and return the numbers of the jobs."""
        # Read before the schedules themselves, so that one that is among these and not among those is gone.
        known = {row["name"]: row for row in self._database.fetch(QUERIES["known"])}
        schedules = [each for each in self.all() if each.by_time]
        if not schedules and not known:
            return []
        now, found = self._now(), []
        for each in schedules:
            job = self._tick(each, known.get(each.name), now)
            found += [job] if job is not None else []
        gone = {name for name in known if name.startswith(PIPELINE)} - {each.name for each in schedules}
        if gone:
            # One that is applied again later is not to be taken for one that has missed its times.
            self._database.fetch(QUERIES["forget"], {"names": sorted(gone)})
        return found

    def look_for_changes(self) -> list[int]:
        """Queue builds of pipelines that are built on change, if something has; return the numbers of the jobs.

        What a pipeline has to do is asked of the ledger. So nothing is missed while no worker runs, and nothing built
        twice. Heads are looked at, and not told by NOTIFY: that would let commits of all writers wait for one another.
        """
        wanted = [each for each in self.all() if not each.by_time]
        if not wanted:
            return []
        state = {"name": ON_CHANGE, "state": " ".join(self._workspace.pipelines.registry.state())}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["first"], {"name": ON_CHANGE})
            if connection.execute(QUERIES["seen"], state).first() is None:
                return []
            return [
                self._queue.add_within(connection, each.kind, each.options, by=each.name)[0]
                for each in wanted
                if self._has_something_to_do(each.name.removeprefix(PIPELINE))
            ]

    def _tick(self, schedule: Schedule, known: sqlalchemy.RowMapping | None, now: datetime) -> int | None:
        tick = last_tick(schedule.text, now, self.zone)
        kept = {"name": schedule.name, "schedule": f"{schedule.text} {self.zone.key}", "tick": tick or now}
        if known is None or known["schedule"] != kept["schedule"]:
            self._database.fetch(QUERIES["learn"], kept)
            return None
        if tick is None or tick <= known["ticked_at"]:
            return None
        with self._database.transaction() as connection:
            if connection.execute(QUERIES["tick"], kept).first() is None:
                return None
            return self._queue.add_within(connection, schedule.kind, schedule.options, by=schedule.name)[0]

    def _has_something_to_do(self, pipeline: str) -> bool:
        try:
            # The second one raises if there is nothing to read yet.
            pipelines = self._workspace.pipelines
            return bool(pipelines.pending([pipeline]) and pipelines.explain([pipeline]))
        except LakewardError as error:
            # A source that was never written, or was dropped: it is looked at again when something changes.
            log.info("pipeline %s is not built on change: %s", pipeline, error)
            return False

    def _of_database(self) -> datetime:
        now: datetime = self._database.fetch(QUERIES["now"])[0]["now"]
        return now


def upcoming(schedules: Schedules, now: datetime) -> Iterator[tuple[Schedule, datetime | None]]:
    """Yield every schedule, and when it is due next."""
    for each in schedules.all():
        yield each, each.next(now, schedules.zone)
