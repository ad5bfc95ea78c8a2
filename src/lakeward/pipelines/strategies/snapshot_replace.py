"""The strategy `snapshot_replace`: the newest row of every key that the query has ever given."""

from __future__ import annotations

from lakeward.pipelines.strategy import Strategy


class SnapshotReplace(Strategy):
    """A build updates rows that differ and adds new ones. Rows that the query does not give any more stay."""

    name = "snapshot_replace"
    needs_key = True
    takes_delta = True
    takes_updates = True

    def verb(self, *, rebuild: bool) -> str:
        """See `Strategy.verb`."""
        return "upsert"
