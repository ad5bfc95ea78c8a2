"""Readers that compare: they get the primary's rows as always, and beside them another arm is read and compared.

What is found is written down as a parity check of the kind `read`. A difference is logged, counted, and blocks the
switch of a flip; that the other arm can't be read is written down as that. The reader never notices either. A rule
that accepts differences in a column holds here, too: such a difference is written down, and counts as none.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

import pyarrow as pa

from lakeward.clock import Clock
from lakeward.control.ignore_rules import IgnoreRules
from lakeward.control.metrics import Metrics
from lakeward.control.parity import ParityChecks
from lakeward.errors import LakewardError
from lakeward.storage.comparison import Compared, Comparison, Hashed
from lakeward.storage.duck import Duck
from lakeward.storage.finding import Finder, without
from lakeward.storage.routing import Place
from lakeward.storage.table import TableRef
from lakeward.types.logical import parse_type
from lakeward.types.schema import CREATED_AT, OP, ROW_ID, ROW_INDEX, VERSION, Column, Schema

AT_ONCE = 4
"""So many reads of a process are compared at a time; others are only read."""

KIND = "read"

_COUNTER = "lakeward_shadow_reads_total"
_OWN_TYPES = {OP: "string", ROW_INDEX: "long", ROW_ID: "long", CREATED_AT: "timestamptz", VERSION: "long"}

log = logging.getLogger("lakeward.shadow")


class Sampler:
    """Picks a share of reads, evenly: with 0.25 every fourth one.

    Args:
        share: from 0, none, to 1, all.
    """

    def __init__(self, share: float) -> None:
        self._share = share
        self._lock = threading.Lock()
        self._reads = 0

    def __call__(self) -> bool:
        """Say whether the next read is picked."""
        with self._lock:
            before, self._reads = int(self._reads * self._share), self._reads + 1
            return int(self._reads * self._share) > before


@dataclass(frozen=True)
class ShadowRead:
    """One read, and the other arm that it could be compared with.

    Args:
        table: the dataset.
        reader: the named place in the product that reads.
        columns: what it gets: business columns, `__op`, and identity columns.
        place: where its rows come from.
        beside: where else the version is; None: nowhere.
        mirror: the arm that should hold it; None: the dataset has none.
        opened: opens the rows of either place.
        still_there: raises if the version has gone from one of the places.
        next_row_index: the position that the dataset's next row would get; None: single rows can't be looked for.
        filtered: the columns that say which rows it gets.
    """

    table: TableRef
    reader: str
    columns: tuple[str, ...]
    place: Place
    beside: Place | None
    mirror: str | None
    opened: Callable[[Place], pa.RecordBatchReader]
    still_there: Callable[[], None]
    next_row_index: int | None = None
    filtered: tuple[str, ...] = ()

    def __str__(self) -> str:
        where = f"version {self.place.version.version} of dataset {self.table.name} on the {self.place.arm.name} arm"
        return f"{where}, as {self.reader} reads it,"

    @property
    def schema(self) -> Schema:
        """The columns that are hashed."""
        own = {column.name: column for column in self.table.schema.columns}
        return Schema(tuple(own.get(name) or Column(name, parse_type(_OWN_TYPES[name]), 0) for name in self.columns))


@dataclass(frozen=True)
class Accepted:
    """Columns of a read in which differences are accepted at this moment, and those whose rule has expired."""

    columns: frozenset[str] = frozenset()
    expired: tuple[str, ...] = ()


class Shadow:
    """Runs comparisons, and writes down what they find.

    Args:
        duck: hashes.
        parity: where findings are written down.
        rules: say which differences are accepted.
        metrics: counts them.
        clock: for latencies.
        limit_seconds: how long a comparison may go on when its reader has all rows.
        sampled: picks the reads that are compared.
    """

    def __init__(
        self,
        duck: Duck,
        parity: ParityChecks,
        rules: IgnoreRules,
        metrics: Metrics,
        clock: Clock,
        *,
        limit_seconds: float,
        sampled: Callable[[], bool],
    ) -> None:
        self._duck = duck
        self._parity = parity
        self._rules = rules
        self._metrics = metrics
        self._clock = clock
        self._limit_seconds = limit_seconds
        self.sampled = sampled
        self._finder = Finder(duck)
        self._lock = threading.Lock()
        self._running: set[Comparison] = set()
        self._looked_at: set[tuple[int, int]] = set()

    def read(self, asked: ShadowRead) -> pa.RecordBatchReader:
        """Stream the rows of `place`, as they come, and compare them if this read is picked."""
        beside = asked.beside
        if beside is None:
            # A mirror that is behind is no fault of its own: how far it is stands in the ledger, for all to see.
            self._count(asked, "alone" if asked.mirror is None else "behind")
        if beside is None or not self.sampled():
            return asked.opened(asked.place)
        rules: list[Accepted] = []

        def hashed() -> Hashed:
            # As they are when the rows are read; none can expire in the middle of a finding.
            rules.append(self._accepted(asked))
            return Hashed(asked.schema, _without(asked.schema, rules[0].columns))

        comparison = Comparison(
            self._duck,
            self._clock,
            hashed,
            lambda: asked.opened(beside),
            self._limit_seconds,
            lambda compared: self._ended(comparison, asked, beside, compared, rules[0] if rules else Accepted()),
        )
        return comparison.over(lambda: asked.opened(asked.place), lambda: self._begin(comparison, asked))

    def _begin(self, comparison: Comparison, asked: ShadowRead) -> bool:
        with self._lock:
            if len(self._running) < AT_ONCE:
                self._running.add(comparison)
                return True
        self._count(asked, "skipped")
        return False

    def settle(self) -> None:
        """Wait for the comparisons whose readers have ended: each is over within its limit."""
        for comparison in self._snapshot():
            if comparison.ended.is_set():
                comparison.join()

    def close(self) -> None:
        """Wait as `settle` does, and give up comparisons whose readers are not at their end."""
        self.settle()
        for comparison in self._snapshot():
            comparison.give_up()
            comparison.join()

    def _snapshot(self) -> list[Comparison]:
        with self._lock:
            return list(self._running)

    def _accepted(self, asked: ShadowRead) -> Accepted:
        """Look up the rules for the columns that are read, or that say which rows are."""
        names = {column.field_id: column.name for column in asked.table.schema.columns}
        read = {*asked.columns, *asked.filtered}
        rules = [(names.get(rule.field_id), rule.expired) for rule in self._rules.of(asked.table.dataset_id)]
        found = [(name, expired) for name, expired in rules if name in read and name is not None]
        return Accepted(
            frozenset(name for name, expired in found if not expired), tuple(name for name, expired in found if expired)
        )

    def _ended(
        self, comparison: Comparison, asked: ShadowRead, beside: Place, compared: Compared | None, rules: Accepted
    ) -> None:
        """Take what a comparison came to; whatever goes wrong here, its reader is served."""
        try:
            if compared is None:
                self._count(asked, "left")
            else:
                self._record(asked, beside.arm.name, _sound(asked, compared, rules), rules)
        finally:
            with self._lock:
                self._running.discard(comparison)

    def _record(self, asked: ShadowRead, other: str, compared: Compared, rules: Accepted) -> None:
        """Count, log and write down what a comparison came to."""
        arm = asked.place.arm.name
        details: dict[str, object] = {
            "reader": asked.reader,
            "primary": arm,
            "arms": {arm: compared.given.to_json(), other: compared.other.to_json()},
        }
        if compared.equal is None:
            self._count(asked, "failed")
            details["error"] = compared.error
            log.warning("%s could not be compared with the %s arm: %s", asked, other, compared.error)
        elif compared.equal:
            self._count(asked, "accepted" if compared.accepted else "equal")
            details.update({"ignored": sorted(rules.columns)} if compared.accepted else {})
        else:
            self._count(asked, "mismatch")
            details.update({"expired_rules": list(rules.expired)} if rules.expired else {})
            there, here = compared.other.digest, compared.given.digest
            why = f"; the rule for {', '.join(rules.expired)} has expired" if rules.expired else ""
            log.error("%s differs from the %s arm: %s there, %s here%s", asked, other, there, here, why)
            details.update(self._samples(asked, rules))
        version, rows = asked.place.version.version, compared.given.digest.count
        try:
            self._parity.record(asked.table.dataset_id, version, KIND, equal=compared.equal, rows=rows, details=details)
        except LakewardError as error:
            log.warning("%s: what its comparison found is not written down: %s", asked, error)

    def _samples(self, asked: ShadowRead, rules: Accepted) -> dict[str, object]:
        """Look for rows that differ, by position, once for each version: it may read both arms."""
        key = (asked.table.dataset_id, asked.place.version.version)
        with self._lock:
            known = key in self._looked_at
            self._looked_at.add(key)
        if known or asked.next_row_index is None or asked.beside is None:
            return {}
        try:
            counted = without(asked.table, rules.columns)
            found = self._finder.find(counted, (asked.place, asked.beside), asked.next_row_index)
        except LakewardError as error:
            return {"not_found": f"{type(error).__name__}: {error.message}"}
        return {"found": found.to_json(), "samples": [sample.to_json() for sample in found.samples]}

    def _count(self, asked: ShadowRead, outcome: str) -> None:
        self._metrics.add(_COUNTER, dataset=asked.table.dataset_id, outcome=outcome, reader=asked.reader)


def _without(schema: Schema, columns: frozenset[str]) -> Schema:
    return Schema(tuple(column for column in schema.columns if column.name not in columns)) if columns else schema


def _sound(asked: ShadowRead, compared: Compared, rules: Accepted) -> Compared:
    """Take a difference back that may be none.

    Rows may have been removed meanwhile, as those of an arm that is drained. And a filter over a column in which
    differences are accepted picks other rows on each arm.
    """
    if compared.equal is not False:
        return compared
    picked = sorted(rules.columns.intersection(asked.filtered))
    if picked:
        return replace(compared, error=f"its filter asks for {', '.join(picked)}, where differences are accepted")
    try:
        asked.still_there()
    except LakewardError as error:
        return replace(compared, error=f"{type(error).__name__}: {error.message}")
    return compared
