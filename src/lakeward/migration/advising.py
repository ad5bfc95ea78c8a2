"""Which datasets gain from a flip, and why: one function over facts that were measured. Without facts, no opinion.

The thresholds are rules of thumb. Scans of many rows gain from columnar files, and large writes cost little there; a
small dataset that is written all the time is better off in Postgres, where a write makes neither a snapshot nor files.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from lakeward.storage.extent import Extent

DAYS = 7.0
"""So many days of the ledger are looked at."""

LARGE_ROWS = 1_000_000
SMALL_ROWS = 100_000
LARGE_WRITE_ROWS = 1_000
"""From so many changed rows on, on the average, writes are no single edits."""

OFTEN_A_DAY = 24.0
FEW_READS = 20
"""Of fewer compared reads nothing is concluded."""

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
        if self.reads:
            told |= {"compared_reads": self.reads, "median_seconds": dict(self.seconds)}
        return told

    def not_known(self) -> list[str]:
        """Return what would matter, and was not measured."""
        return [] if self.reads >= FEW_READS else ["how readers read it: no reader is set to shadow both arms"]


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


def _large_and_written_in_bulk(facts: Facts) -> str | None:
    each = facts.rows_a_write
    if facts.rows < LARGE_ROWS or (each is not None and each < LARGE_WRITE_ROWS):
        return None
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


def _worn(facts: Facts) -> str | None:
    data, deletes = facts.extent.data_files, facts.extent.delete_files
    if data is None or deletes is None or deletes <= data or facts.writes_a_day < OFTEN_A_DAY:
        return None
    return f"{deletes:,} delete files on {data:,} data files, and {facts.writes_a_day:,.0f} writes a day"


_TO: Mapping[str, tuple[Rule, ...]] = {
    "iceberg": (_large_and_written_in_bulk, _bloated),
    "postgres": (_small_and_written_often, _worn),
}
"""What speaks for an arm, the strongest reason first."""
