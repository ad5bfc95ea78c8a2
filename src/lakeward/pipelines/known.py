"""What is known of a version before any of its rows is read: what the write did, and what was found before it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from lakeward.control.expectation_results import ExpectationResult


class Extent(Enum):
    """Which rows of a version are read to judge it: none, those that it wrote, or all."""

    NONE = "none"
    NEW = "new"
    ALL = "all"


@dataclass(frozen=True)
class Known:
    """What one expectation can go on from.

    Args:
        rows: how many the version has, by the write's own count.
        before: how many the version before it has.
        only_adds: whether it has every row of that one, as it was.
        keyed: whether rows were matched by the primary key: none of those written has a key that another row has, if
            no two rows had the same before.
        found: what the same expectation found in all rows of the version before; None: nobody knows.
    """

    rows: int
    before: int
    only_adds: bool
    keyed: bool
    found: ExpectationResult | None
