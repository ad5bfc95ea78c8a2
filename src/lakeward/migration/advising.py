"""Which datasets gain from a flip, and why: one function over facts that were measured. Without facts, no opinion.

The thresholds are rules of thumb. Scans of many rows gain from columnar files, and large writes cost little there; a
small dataset that is written all the time is better off in Postgres, where a write makes neither a snapshot nor files.

How a dataset is read is counted by kind. Of a few thousand rows Postgres answers sooner, be it all of them or one by
its key: opening files costs more than reading so few rows. Of more than some ten thousand it is the other way round.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakeward.storage.extent import Extent
from lakeward.storage.scans import FILTERED, POINT, SCAN

DAYS = 7.0
"""So many days of the ledger are looked at."""

LARGE_ROWS = 1_000_000
SMALL_ROWS = 100_000
LARGE_WRITE_ROWS = 1_000
"""From so many changed rows on, on the average, writes are no single edits."""

OFTEN_A_DAY = 24.0
FEW_READS = 20
"""Of fewer reads nothing is concluded."""

MOSTLY = 0.5
SELDOM = 0.2
"""Shares of the reads."""

READS_A_WRITE = 10.0
"""From so many scans for each write on, files are worth their while."""

TINY_ROWS = 10_000
"""Of so few rows Postgres answers sooner."""

QUICKER = 2.0
"""So many times as quick an arm has to be."""


@dataclass(frozen=True)
class Facts:
    """What is known of a dataset.

    Args:
        dataset, arm: its name, and the arm that serves it alone.
        rows: of its head.
        days: how many days of its ledger are known; at most `DAYS`.
        writes: how many versions were written in them.
        rows_written: how many rows those added, changed or removed.
        extent: how large it is on its arm.
        reads: how many reads of both arms were compared, in the same days.
        seconds: the median of what those took, by arm.
        kinds: how many reads there were in the same days, by kind, see `storage.scans.KINDS`.
    """

    dataset: str
    arm: str
    rows: int
    days: float
    writes: int
    rows_written: int
    extent: Extent = field(default_factory=Extent)
    reads: int = 0
    seconds: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, int] = field(default_factory=dict)

    @property
    def all_reads(self) -> int:
        """How many reads there were."""
        return sum(self.kinds.values())

    @property
    def scans(self) -> int:
        """How many of them were of all rows, or of those that a filter picks."""
        return self.kinds.get(SCAN, 0) + self.kinds.get(FILTERED, 0)

    def share(self, reads: int) -> float | None:
        """Return which share of all reads so many are; None: there are too few to tell."""
        return reads / self.all_reads if self.all_reads >= FEW_READS else None

    @property
    def writes_a_day(self) -> float:
        """Versions a day; a dataset that is younger than a day is taken to go on for one as it did."""
        return self.writes / max(self.days, 1.0)

    @property
    def rows_a_write(self) -> float | None:
        """Changed rows of a write, on the average; None: there was none."""
        return self.rows_written / self.writes if self.writes else None

    def looked_at(self) -> dict[str, object]:
        """Return what was looked at, by name; what is not known is not there."""
        told: dict[str, object] = {
            "rows": self.rows,
            "days": round(self.days, 1),
            "writes": self.writes,
            "rows_written": self.rows_written,
        }
        told |= {name: value for name, value in vars(self.extent).items() if value is not None}
        if self.all_reads:
            told |= {"reads": self.all_reads, "scans": self.scans, "point_reads": self.kinds.get(POINT, 0)}
        if self.reads:
            told |= {"compared_reads": self.reads, "median_seconds": dict(self.seconds)}
        return told

    def not_known(self) -> list[str]:
        """Return what would matter, and was not measured."""
        unknown = [] if self.all_reads >= FEW_READS else ["how readers read it: fewer than 20 reads were counted"]
        if self.reads < FEW_READS:
            unknown.append("how long the other arm would take: no reader is set to shadow both arms")
        return unknown


@dataclass(frozen=True)
class Advice:
    """To flip a dataset to an arm, why, and what was looked at."""

    dataset: str
    to: str
    reason: str
    facts: Mapping[str, object]
    not_known: tuple[str, ...]

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "facts": dict(self.facts), "not_known": list(self.not_known)}


Rule = Callable[[Facts], str | None]
"""Returns the reason to flip to the other arm; None: it has none."""


def advise(facts: Facts) -> Advice | None:
    """Return what to do with a dataset; None: nothing speaks for a flip.

    Where enough reads of both arms were compared, they alone decide.
    """
    to = {"postgres": "iceberg", "iceberg": "postgres"}[facts.arm]
    rules: tuple[Rule, ...] = _TO[to]
    if facts.reads >= FEW_READS and len(facts.seconds) == 2:
        rules = (lambda known: _quicker(known, to),)
    reason = next(filter(None, (rule(facts) for rule in rules)), None)
    return Advice(facts.dataset, to, reason, facts.looked_at(), tuple(facts.not_known())) if reason else None


def _quicker(facts: Facts, to: str) -> str | None:
    old, new = facts.seconds[facts.arm], facts.seconds[to]
    if new * QUICKER > old:
        return None
    return f"of {facts.reads:,} compared reads the median took {new:.3g} s on {to}, and {old:.3g} s on {facts.arm}"


def _scanned(facts: Facts) -> str | None:
    """Many scans for each write, of more rows than a few."""
    share = facts.share(facts.scans)
    if share is None or share < MOSTLY or facts.rows < SMALL_ROWS or facts.scans < READS_A_WRITE * facts.writes:
        return None
    return (
        f"{facts.rows:,} rows, and {share:.0%} of {facts.all_reads:,} reads scan them, with {facts.writes:,} writes in "
        f"{facts.days:.0f} days: scans gain from columnar files"
    )


def _large_and_written_in_bulk(facts: Facts) -> str | None:
    each, share = facts.rows_a_write, facts.share(facts.scans)
    if facts.rows < LARGE_ROWS or (each is not None and each < LARGE_WRITE_ROWS):
        return None
    if share is not None and share < SELDOM:
        return None  # nobody scans it
    how = f"written with {each:,.0f} rows at a time" if each is not None else f"not written in {facts.days:.0f} days"
    return f"{facts.rows:,} rows, {how}: scans gain from columnar files"


def _bloated(facts: Facts) -> str | None:
    replaced, each = facts.extent.replaced_rows, facts.rows_a_write
    if replaced is None or replaced < max(facts.rows, SMALL_ROWS) or each is None or each < LARGE_WRITE_ROWS:
        return None
    return (
        f"Postgres keeps {replaced:,} replaced rows beside {facts.rows:,} live ones, and writes change {each:,.0f} "
        "rows at a time"
    )


def _small_and_written_often(facts: Facts) -> str | None:
    each = facts.rows_a_write
    if facts.rows > SMALL_ROWS or facts.writes_a_day < OFTEN_A_DAY or each is None or each >= LARGE_WRITE_ROWS:
        return None
    return (
        f"{facts.rows:,} rows, written {facts.writes_a_day:,.0f} times a day with {each:,.0f} rows each: every write "
        "makes a snapshot and files"
    )


def _looked_up(facts: Facts) -> str | None:
    """A few rows, of which readers ask for single ones."""
    points = facts.kinds.get(POINT, 0)
    share = facts.share(points)
    if share is None or share < MOSTLY or facts.rows > TINY_ROWS:
        return None
    return (
        f"{facts.rows:,} rows, and {share:.0%} of {facts.all_reads:,} reads ask for single ones: Postgres answers such "
        "without opening files"
    )


def _worn(facts: Facts) -> str | None:
    data, deletes = facts.extent.data_files, facts.extent.delete_files
    if data is None or deletes is None or deletes <= data or facts.writes_a_day < OFTEN_A_DAY:
        return None
    return f"{deletes:,} delete files on {data:,} data files, and {facts.writes_a_day:,.0f} writes a day"


_TO: Mapping[str, tuple[Rule, ...]] = {
    "iceberg": (_scanned, _large_and_written_in_bulk, _bloated),
    "postgres": (_small_and_written_often, _worn, _looked_up),
}
"""What speaks for an arm, the strongest reason first."""
