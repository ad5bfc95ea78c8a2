"""Which errors may be gone when a job is tried again: the one table of them, each with its reason.

All others say that something is wrong with what was asked for, or with the data: another try would end in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lakeward.errors import (
    Busy,
    CatalogError,
    Contended,
    DatabaseUnavailable,
    LakewardError,
    LeaseLost,
    OutcomeUnknown,
    RouteChanged,
    SourceError,
    SourceRefused,
    StorageFull,
)

TRANSIENT: Final[Mapping[type[LakewardError], str]] = {
    DatabaseUnavailable: "Postgres restarts, or the network is back",
    OutcomeUnknown: "the ledger knows what became of it, and what was decided is not done again",
    Contended: "whoever holds the dataset, or works on its flip, ends",
    Busy: "there is room again",
    LeaseLost: "it was taken for dead, and what it began was removed",
    RouteChanged: "the next try goes by the new route",
    CatalogError: "the catalog restarts, or lets go of its lock",
    SourceError: "the source answers again",
    StorageFull: "somebody makes space",
}
"""By class; what derives from one of them counts, too."""

FINAL: Final[Mapping[type[LakewardError], str]] = {
    SourceRefused: "somebody mends the password, the right or the name first; and some lock out whoever tries on",
}
"""Of those, what never counts."""

REFUSALS: Final = ("ForbiddenError", "UnauthorizedError", "OAuthError", "NoSuchTableError", "NotImplementedError")
"""Of a catalog that has answered: another try gets the same answer. By name, since its client is not ours to import."""

FIRST_SECONDS, MOST_SECONDS = 2.0, 300.0


def passes(error: BaseException) -> bool:
    """Say whether an error may be gone at the next try.

    Of several in one, each has to be.
    """
    if not isinstance(error, LakewardError):
        return False
    if not isinstance(error, tuple(TRANSIENT)) or isinstance(error, tuple(FINAL)):
        return False
    if isinstance(error, CatalogError) and type(error.__cause__).__name__ in REFUSALS:
        return False
    return all(passes(part) for part in error.parts)


def wait_seconds(failures: int) -> float:
    """Return how long to wait before the next try, after so many that failed."""
    return min(FIRST_SECONDS * 4.0 ** max(failures - 1, 0), MOST_SECONDS)
