"""The stage that compares all rows of both arms."""

from __future__ import annotations

from lakeward.migration.comparing import compare
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
        return [
            *_missed(lag),
            f"compute the digest of all {dataset.row_count:,} rows on both arms, side by side, and compare",
        ]

    def done(self, context: FlipContext) -> bool:
        """Say whether this flip has found the arms equal, and nobody has found them different since."""
        if not context.dataset.head_version:
            return True
        return context.noted(self.name) and context.rooms.parity.mismatch(context.flip.dataset_id) is None

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`.

        Raises:
            ParityMismatch: they differ, with samples of the rows by key.
        """
        if not context.dataset.head_version:
            return {"rows": 0}
        rooms, other = context.rooms, _other_arm(context)
        if rooms.parity.mismatch(context.dataset.id) is not None:
            # Nothing is brought to a copy that was found to differ, unless it is proved to be equal now.
            compare(rooms, context.dataset, other)
        rooms.replication.catch_up(context.dataset, other)
        return compare(rooms, context.dataset, other).to_json()

    def undo(self, context: FlipContext) -> list[str]:
        """Do nothing: it changed nothing."""
        return []


def _missed(lag: Lag) -> list[str]:
    """Say what comes first: what has been written since the arm got the rows that it holds, or will have been."""
    if lag.holds is None:
        return [f"bring what is written during the backfill to the {lag.arm} arm; writers wait for that"]
    return [f"bring {lag.missed} to the {lag.arm} arm; writers wait for that"] if not lag.current else []


def _other_arm(context: FlipContext) -> str:
    """Return the arm that does not serve the dataset now."""
    direction = context.direction
    return direction.source if context.dataset.route.primary_arm == direction.to else direction.to
