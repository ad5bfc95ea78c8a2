"""The stage that reads both arms as readers do, before the other one serves them."""

from __future__ import annotations

from lakeward.errors import ParityMismatch
from lakeward.migration.reading import ComparedRead, read_both, reads_of
from lakeward.migration.shadowing import put_back, still_set
from lakeward.migration.stage import Details, FlipContext, Stage


class Canary(Stage):
    """Reads both arms as readers do, compares what they get, and tells which is quicker."""

    name = "canary"
    position = 50

    def explain(self, context: FlipContext) -> list[str]:
        """See `Stage.explain`."""
        dataset = context.dataset
        if self.done(context):
            return ["nothing: both arms were read and gave the same rows"]
        if context.rooms.replication.lag(dataset, context.direction.other(dataset.route.primary_arm)).holds is None:
            return ["read, from both arms as readers do: all rows, those of the newest write, a part, some columns"]
        reads = reads_of(context.rooms, dataset, context.direction.other(dataset.route.primary_arm))
        return [f"read {each.what} from both arms, and compare digests and counts" for each in reads]

    def done(self, context: FlipContext) -> bool:
        """Say whether this flip has read both arms and found them equal, or the other arm serves already."""
        dataset = context.dataset
        if not dataset.head_version or dataset.route.primary_arm == context.direction.to:
            return True
        return context.noted(self.name) and context.rooms.parity.mismatch(dataset.id) is None

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`. How quick the arms are is told, and nothing is asked of it.

        Raises:
            ParityMismatch: they gave different rows.
        """
        dataset = context.dataset
        if not dataset.head_version:
            return {"reads": 0}
        reads = reads_of(context.rooms, dataset, context.direction.other(dataset.route.primary_arm))
        found = []
        for number, read in enumerate(reads, start=1):
            context.check()
            found.append(read_both(context.rooms, dataset, read, context.direction.arms))
            context.tell(self.name, number, len(reads))
        _refuse_difference(context, found)
        return {
            "reads": len(found),
            "rows": sum(each.rows for each in found),
            "seconds": {arm: round(sum(each.seconds[arm] for each in found), 4) for arm in context.direction.arms},
        }

    def undo(self, context: FlipContext) -> list[str]:
        """Put back the flags of readers that a watch has left set, because it was killed."""
        return put_back(context)

    def explain_undo(self, context: FlipContext) -> list[str]:
        """See `Stage.explain_undo`."""
        return [f"put the flag of reader {name} back" for name in still_set(context)]


def _refuse_difference(context: FlipContext, found: list[ComparedRead]) -> None:
    different = next((each for each in found if not each.equal), None)
    if different is None:
        return
    dataset = context.dataset
    raise ParityMismatch(
        f"dataset {dataset.name}, version {different.version}: both arms were read ({different.what}) and differ: "
        + ", ".join(f"{arm} {digest}" for arm, digest in different.digests.items()),
        safe=f"the {dataset.route.primary_arm} arm serves as before",
        next_step=f"lakeward flip verify {dataset.name}",
        dataset=dataset.name,
        version=different.version,
        digests={arm: str(digest) for arm, digest in different.digests.items()},
    )
