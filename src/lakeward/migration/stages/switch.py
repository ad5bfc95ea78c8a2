"""The stage from which on the other arm serves."""

from __future__ import annotations

from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ArmNotCurrent, ConflictError, ParityMismatch
from lakeward.migration.comparing import compare_first
from lakeward.migration.stage import Details, FlipContext, Stage

TRIES = 5
"""How often the mirror is brought up, because a write came in between that did not get there."""


class Switch(Stage):
    """Lets the other arm serve readers and writers: one row, one epoch. The old one gets every write as its mirror."""

    name = "switch"
    position = 60

    def explain(self, context: FlipContext) -> list[str]:
        """See `Stage.explain`."""
        dataset, direction = context.dataset, context.direction
        if self.done(context):
            return [f"nothing: the {direction.to} arm serves (mode {dataset.route.mode})"]
        # If the mirroring is still to begin, that is a change of the route, too.
        changes = 2 if dataset.route.mode == direction.alone else 1
        route = f"primary {direction.to}, mirror {direction.source}, epoch {dataset.route.epoch + changes}"
        return [
            "wait for the write that is under way, if any; writers that come wait for this",
            f"see that the {direction.to} arm holds the head, and that no comparison has failed",
            f"set mode {direction.switched}: {route}",
        ]

    def done(self, context: FlipContext) -> bool:
        """Say whether the other arm serves."""
        return context.dataset.route.primary_arm == context.direction.to

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`.

        Raises:
            ParityMismatch: a comparison of the arms has failed, and none of all rows has found them equal since.
            ConflictError: the mirror is too far behind.
        """
        return turn(context, context.direction.switched, context.direction.to, "flip.switch")

    def undo(self, context: FlipContext) -> list[str]:
        """Let the old arm serve again. Nothing is lost: it got every write."""
        actions = self.explain_undo(context)
        if actions:
            turn(context, context.direction.mirrored, context.direction.source, "flip.revert")
        return actions

    def explain_undo(self, context: FlipContext) -> list[str]:
        """See `Stage.explain_undo`."""
        direction = context.direction
        if context.dataset.route.mode != direction.switched:
            return []
        return [f"set mode {direction.mirrored}: the {direction.source} arm serves again"]


def turn(context: FlipContext, mode: str, to: str, writer: str) -> Details:
    """Change which arm serves, once it is proved to hold the head.

    Args:
        context: the flip.
        mode: the new one.
        to: the arm that is to serve.
        writer: what the change is called in the dataset's history.
    """
    replication = context.rooms.replication
    compare_first(context.rooms, context.dataset, to)
    for _ in range(TRIES):
        dataset = context.dataset
        _refuse_mismatch(context, dataset)
        lag = replication.lag(dataset, to)
        if lag.versions > context.options.max_lag:
            raise ConflictError(
                f"the {to} arm of dataset {dataset.name} is behind by {lag.missed}; a switch, for which writers wait, "
                f"catches up at most {context.options.max_lag:,} versions",
                safe="the route is as it was",
                next_step=f"lakeward maintain {dataset.name}, or --max-lag {lag.versions}",
                dataset=dataset.name,
            )
        if not lag.current:
            replication.catch_up(dataset, to)
        try:
            route = context.reroute(mode, writer, lambda opened: _held_back(context, opened))
        except ArmNotCurrent:
            # A write came in between, and did not get to the mirror.
            continue
        return {"mode": route.mode, "epoch": route.epoch}
    raise ConflictError(
        f"the {to} arm of dataset {context.dataset.name} was behind each time that it was to serve",
        safe="the route is as it was",
        next_step="`lakeward status` shows why its mirror misses writes",
        dataset=context.dataset.name,
    )


def _held_back(context: FlipContext, opened: OpenTransaction) -> None:
    """Look once more, now that no write is under way."""
    context.rooms.faults.at("flip:switching")
    _refuse_mismatch(context, context.dataset)


def _refuse_mismatch(context: FlipContext, dataset: DatasetRecord) -> None:
    found = context.rooms.parity.mismatch(dataset.id)
    if found is not None:
        raise ParityMismatch(
            f"dataset {dataset.name}: a comparison of its arms at version {found.version} found that they differ",
            safe="the route is as it was, and readers are served as before",
            next_step=f"lakeward flip verify {dataset.name}",
            dataset=dataset.name,
            version=found.version,
            kind=found.kind,
        )
