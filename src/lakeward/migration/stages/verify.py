"""The stage that compares all rows of both arms."""

from __future__ import annotations

from lakeward.migration.comparing import compare, compare_first
from lakeward.migration.stage import Details, FlipContext, Stage
from lakeward.storage.replication import Lag


class Verify(Stage):
    """Compares the digests of both arms at one version; where they differ, finds the rows."""

    name = "verify"
    position = 30

    def explain(self, context: FlipContext) -> list[str]:
        """See `Stage.explain`."""
        dataset, to = context.dataset, context.direction.to
        lag = context.rooms.replication.lag(dataset, to)
        what = f"compute the digest of all {dataset.row_count:,} rows on both arms, side by side, and compare"
        if lag.holds is None:
            return [f"{what}; if they are equal, the copy counts", *_missed(lag)]
        return [*_missed(lag), what]

    def done(self, context: FlipContext) -> bool:
        """Say whether this flip has found the arms equal, nobody has found them different since, and no copy waits."""
        dataset, rooms = context.dataset, context.rooms
        if not dataset.head_version:
            return True
        waits = rooms.replication.lag(dataset, context.direction.other(dataset.route.primary_arm)).waits
        return waits is None and context.noted(self.name) and rooms.parity.mismatch(dataset.id) is None

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`.

        Raises:
            ParityMismatch: they differ, with samples of the rows by key.
        """
        if not context.dataset.head_version:
            return {"rows": 0}
        rooms, other = context.rooms, context.direction.other(context.dataset.route.primary_arm)
        first = compare_first(rooms, context.dataset, other)
        if first is not None:
            # What is brought after it is compared as it is brought, so that the arms are equal then, too.
            rooms.replication.catch_up(context.dataset, other)
            return first.to_json()
        if rooms.parity.mismatch(context.dataset.id) is not None:
            # Nothing is brought to a copy that was found to differ, unless it is proved to be equal now.
            compare(rooms, context.dataset, other)
        rooms.replication.catch_up(context.dataset, other)
        return compare(rooms, context.dataset, other).to_json()

    def undo(self, context: FlipContext) -> list[str]:
        """Do nothing: it changed nothing."""
        return []


def _missed(lag: Lag) -> list[str]:
    """Say what is brought: what has been written since the arm got the rows that it has, or will have been."""
    if not lag.has_rows:
        return [f"bring what is written during the backfill to the {lag.arm} arm; writers wait for that"]
    return [f"bring {lag.missed} to the {lag.arm} arm; writers wait for that"] if not lag.current else []
