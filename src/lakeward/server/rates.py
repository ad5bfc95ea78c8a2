"""How often somebody may ask: counted in this process, so that each server of a workspace counts for itself."""

from __future__ import annotations

import math
import time

from limits import RateLimitItem, parse
from limits.storage import MemoryStorage
from limits.strategies import SlidingWindowCounterRateLimiter

from lakeward.errors import SettingsError

FAILED_LOGINS = "10/minute"
"""So many tokens that are none may come from one address."""


class Rates:
    """Counts requests of users, and failed logins of addresses.

    Args:
        wanted: how many requests of one user are answered, as `600/minute`; None: any number.

    Raises:
        SettingsError: it can't be meant.
    """

    def __init__(self, wanted: str | None) -> None:
        self._limiter = SlidingWindowCounterRateLimiter(MemoryStorage())
        self._requests = rate_of(wanted) if wanted is not None else None
        self._failures = parse(FAILED_LOGINS)

    def hit(self, user: str) -> int | None:
        """Count a request of a user; return after how many seconds they may ask again, if they asked too often."""
        if self._requests is None or self._limiter.hit(self._requests, "user", user):
            return None
        return self._wait(self._requests, "user", user)

    def failed(self, address: str) -> None:
        """Count a token from an address that was none."""
        self._limiter.hit(self._failures, "address", address)

    def refused(self, address: str) -> int | None:
        """Return after how many seconds an address may try again, if too many of its tokens were none."""
        if self._limiter.test(self._failures, "address", address):
            return None
        return self._wait(self._failures, "address", address)

    def _wait(self, item: RateLimitItem, *key: str) -> int:
        return max(1, math.ceil(self._limiter.get_window_stats(item, *key).reset_time - time.time()))


def rate_of(text: str) -> RateLimitItem:
    """Return a rate as a setting writes it, `600/minute`.

    Raises:
        SettingsError: it can't be meant.
    """
    try:
        return parse(text)
    except ValueError:
        raise SettingsError(
            f"server.rate_limit is {text!r}, which is no rate",
            next_step="write 600/minute, 20/second or 10000/hour",
            setting="server.rate_limit",
        ) from None
