"""The strategy `append_always`: what the query gives of new source rows is added, whatever is there."""

from __future__ import annotations

from lakeward.pipelines.strategy import Strategy


class AppendAlways(Strategy):
    """A build adds all rows that were computed of what is new in the sources. A rebuild starts over."""

    name = "append_always"
    takes_delta = True

    def verb(self, *, rebuild: bool) -> str:
        """See `Strategy.verb`. Everything was computed: added to what is there, it would be there twice."""
        return "replace" if rebuild else "append"
