"""The strategy `replace`: a dataset is what its query gives now."""

from __future__ import annotations

from lakeward.pipelines.strategy import Strategy


class Replace(Strategy):
    """Every build replaces all rows by the rows that were computed."""

    name = "replace"

    def verb(self, *, rebuild: bool) -> str:
        """See `Strategy.verb`."""
        return "replace"
