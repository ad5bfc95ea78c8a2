"""The strategy `append_new`: the first row of every key that the query has ever given."""

from __future__ import annotations

from lakeward.pipelines.strategy import Strategy


class AppendNew(Strategy):
    """A build adds the rows whose key is not there yet, and leaves the others as they are."""

    name = "append_new"
    needs_key = True
    takes_delta = True
    takes_updates = True

    def verb(self, *, rebuild: bool) -> str:
        """See `Strategy.verb`."""
        return "append_new"
