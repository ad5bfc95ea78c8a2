"""The strategy `mirror`: a dataset is what its query gives now, and rows that stay the same are left alone."""

from __future__ import annotations

from lakeward.pipelines.strategy import Strategy


class Mirror(Strategy):
    """Every build updates rows that differ, adds new ones, and deletes those that the query does not give any more."""

    name = "mirror"
    needs_key = True

    def verb(self, *, rebuild: bool) -> str:
        """See `Strategy.verb`."""
        return "mirror"
