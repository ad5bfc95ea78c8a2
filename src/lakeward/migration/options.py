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
