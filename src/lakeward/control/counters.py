"""What all processes of a workspace have counted, kept in Postgres by day, and how it gets there.

A process counts in memory, which costs a read nothing. Ten seconds after it began to, and every ten seconds from then
on, a thread beside adds what is new in one statement; the last of it comes when the workspace is closed. What can't be
written stays for the next time. So a process that is killed takes the counts of ten seconds with it: counters say how
often something happens, and nothing is decided by them.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.control.metrics import Metrics, Series
from lakeward.errors import LakewardError

QUERIES = Queries.beside(__file__)

EVERY_SECONDS = 10.0
KEPT_DAYS = 30
"""What is older is forgotten by maintenance."""

log = logging.getLogger("lakeward.metrics")


class Counters:
    """The table `lakeward.counters` of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, counts: Mapping[Series, int]) -> None:
        """Add to what was counted today."""
        datasets, names = zip(*counts, strict=True)
        values = {"datasets": list(datasets), "names": list(names), "counts": list(counts.values())}
        with self._database.statement() as connection:
            connection.execute(QUERIES["add"], values)

    def of_datasets(self, days: int) -> dict[int, dict[str, int]]:
        """Return what was counted in the last days, today included, by dataset; 0: of none."""
        found: dict[int, dict[str, int]] = {}
        for row in self._database.fetch(QUERIES["counted"], {"days": days}):
            found.setdefault(row["dataset_id"], {})[row["name"]] = row["value"]
        return found

    def totals(self, days: int) -> dict[str, int]:
        """Return what was counted in the last days, today included, by name."""
        found: dict[str, int] = {}
        for counts in self.of_datasets(days).values():
            for name, value in counts.items():
                found[name] = found.get(name, 0) + value
        return dict(sorted(found.items()))

    def forget(self, days: int = KEPT_DAYS) -> int:
        """Forget what is older than the last days; return how many counters that were, each of one day."""
        return len(self._database.fetch(QUERIES["forget"], {"days": days}))


class Counting:
    """Counts for one open workspace, and brings the counts to Postgres.

    Args:
        counters: where they are kept.
        every_seconds: how often they are brought there.
    """

    def __init__(self, counters: Counters, every_seconds: float = EVERY_SECONDS) -> None:
        self.metrics = Metrics(self._begun)
        self._counters = counters
        self._every_seconds = every_seconds
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def values(self, days: int | None = None) -> dict[str, int]:
        """Return what this process has counted, by name; with `days`, what all processes have in the last ones.

        That is today, by UTC, and the days before it. What this process has counted is among it.
        """
        if days is None:
            return self.metrics.values()
        self.bring()
        return self._counters.totals(days)

    def bring(self) -> bool:
        """Bring what is new to Postgres; say whether that went well. What could not be brought is brought later."""
        fresh = self.metrics.take()
        if not fresh:
            return True
        try:
            self._counters.add(fresh)
        except (LakewardError, sqlalchemy.exc.SQLAlchemyError) as error:
            self.metrics.give_back(fresh)
            log.info("what was counted is not written down yet: %s", error)
            return False
        return True

    def close(self) -> None:
        """Bring the last of it."""
        with self._lock:
            self._stop.set()
            thread = self._thread
        if thread is not None:
            thread.join()
        self.bring()

    def _begun(self) -> None:
        """Start the thread, once there is something to bring."""
        with self._lock:
            if self._thread is None and not self._stop.is_set():
                self._thread = threading.Thread(target=self._run, name="lakeward counters", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(self._every_seconds):
            self.bring()
