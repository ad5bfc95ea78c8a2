"""What the flags say, as every read and write asks it: from memory, which is never older than ten seconds.

A process that misses a change goes on by the old flags for so long at most. That loses nothing and moves nothing: where
a dataset's rows are is its route's to say, which is read from the ledger each time.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from lakeward.clock import Clock
from lakeward.control.flags.registry import PREFERENCES, PRIMARY, READER, READERS, WRITER, WRITERS, Reader, Writer
from lakeward.control.flags.store import FlagTable
from lakeward.control.metrics import Metrics
from lakeward.control.routes import MODES

FRESH_SECONDS = 10.0
"""How old what is in memory may be."""

log = logging.getLogger("lakeward.flags")


class FlagCache:
    """The flags as this process knows them.

    Args:
        table: where they stand.
        clock: tells how old they are.
        asked: is called at each look, with `forget`; starts what listens for changes, when that is worth it.
        metrics: counts the flags that are above the ceiling of their writer.
        writers, readers: the registered ones.
    """

    def __init__(
        self,
        table: FlagTable,
        clock: Clock,
        asked: Callable[[Callable[[], None]], None] = lambda _: None,
        metrics: Metrics | None = None,
        writers: Mapping[str, Writer] = WRITERS,
        readers: Mapping[str, Reader] = READERS,
    ) -> None:
        self._table = table
        self._clock = clock
        self._asked = asked
        self._metrics = metrics or Metrics()
        self._writers = writers
        self._readers = readers
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, int | None], str] = {}
        self._read_at: float | None = None
        self._changes = 0

    def mode_of_new(self, writer: str) -> str:
        """Return the mode of the datasets that a writer makes: its flag's, at most its ceiling, else its default.

        One that is not registered has no flag, and makes datasets in Postgres.
        """
        registered = self._writers.get(writer)
        if registered is None:
            return MODES[0]
        mode = self._all().get((WRITER, writer, None))
        if mode is None:
            return registered.default
        if mode not in MODES or not registered.allows(mode):
            self._metrics.add("lakeward_flags_clamped_total", writer=writer)
        return clamped(registered, mode)

    def preference(self, reader: str, dataset_id: int) -> str:
        """Return what a reader prefers, one of `PREFERENCES`: by its flag for the dataset, or for all, or its default.

        One that is not registered has no flag, and reads from the primary.
        """
        registered = self._readers.get(reader)
        if registered is None:
            return PRIMARY
        known = self._all()
        found = known.get((READER, reader, dataset_id)) or known.get((READER, reader, None), registered.default)
        if found not in PREFERENCES:
            log.warning("the flag of reader %s says %r, which this version does not know", reader, found)
            return registered.default
        return found

    def writer(self, name: str) -> Writer | None:
        """Return the registered writer of that name."""
        return self._writers.get(name)

    def forget(self) -> None:
        """Look at the table at the next question: something has changed."""
        with self._lock:
            self._changes += 1
            self._read_at = None

    def _all(self) -> Mapping[tuple[str, str, int | None], str]:
        self._asked(self.forget)
        now = self._clock.monotonic()
        with self._lock:
            if self._read_at is not None and now - self._read_at < FRESH_SECONDS:
                return self._known
            changes = self._changes
        found = {(flag.kind, flag.name, flag.dataset_id): flag.value for flag in self._table.all()}
        with self._lock:
            self._known = found
            # A change that was told of while the table was read may not be in what was found.
            self._read_at = now if changes == self._changes else None
        return found


def clamped(writer: Writer, mode: str) -> str:
    """Return the mode that a writer's flag comes to in this version of the code, which may have lowered its ceiling."""
    if mode not in MODES:
        log.warning("the flag of writer %s says %r, which this version does not know", writer.name, mode)
        return writer.default
    if not writer.allows(mode):
        log.warning("the flag of writer %s says %s, above its ceiling: it is %s", writer.name, mode, writer.ceiling)
        return writer.ceiling
    return mode
