"""How a flip is carried out, as its caller says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Options:
    """How a flip is carried out.

    Args:
        rows_per_second: a backfill reads no faster than this; None: as fast as it can.
        max_lag: how many versions the mirror may be behind for a switch to catch up by itself.
        confirmed: the dataset's name, typed by whoever wants its old rows removed.
    """

    rows_per_second: int | None = None
    max_lag: int = 100
    confirmed: str | None = None


@dataclass(frozen=True)
class Limits:
    """What both arms have to keep to.

    Args:
        seconds: for how long.
        max_mismatch: so many comparisons may find that they differ.
        max_latency_ratio: the median read of the new arm takes at most so many times that of the old one; None: as long
            as it likes.
        min_reads: so many reads have to be compared.
    """

    seconds: float
    max_mismatch: int = 0
    max_latency_ratio: float | None = None
    min_reads: int = 1
