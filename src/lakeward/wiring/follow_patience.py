"""What a worker does about an error: it waits for what goes by itself, and gives up where a person is needed."""

from __future__ import annotations

from lakeward.errors import (
    CatalogError,
    DatabaseUnavailable,
    LakewardError,
    LeaseLost,
    LockTimeout,
    OutcomeUnknown,
    RouteChanged,
    SourceError,
    SourceRefused,
)
from lakeward.sources.change_log import ChangeLog

FIRST_DELAY, LONGEST_DELAY = 0.2, 10.0
TRIES = 6
"""So often is tried what may go by itself, or not: for about twelve seconds."""


class Patience:
    """Counts the tries since there was progress.

    Args:
        log: is asked how it stands where the source failed.
    """

    def __init__(self, log: ChangeLog) -> None:
        self._log = log
        self._tries = 0

    def progressed(self) -> None:
        """Take note that something was written, or found to be nothing to write."""
        self._tries = 0

    def delay(self, error: LakewardError) -> float:
        """Return after how many seconds it is tried again.

        Raises:
            LakewardError: `error` itself, where trying again would not help.
        """
        if not self._passes(error):
            raise error
        self._tries += 1
        return float(min(FIRST_DELAY * 2 ** (self._tries - 1), LONGEST_DELAY))

    def _passes(self, error: LakewardError) -> bool:
        if isinstance(error, DatabaseUnavailable | OutcomeUnknown | LockTimeout):
            return True
        if isinstance(error, SourceRefused):
            return False
        if isinstance(error, SourceError):
            try:
                state = self._log.state()
            except SourceRefused:
                return False
            except SourceError:
                # It does not answer at all: it is being restarted, or its network is away.
                return True
            return state is not None and not state.lost and self._tries < TRIES
        return isinstance(error, LeaseLost | RouteChanged | CatalogError) and self._tries < TRIES
