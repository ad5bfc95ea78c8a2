"""The stage from which on every write goes to both arms."""

from __future__ import annotations

from lakeward.migration.comparing import compare_first
from lakeward.migration.stage import Details, FlipContext, Stage


class Mirror(Stage):
    """Lets every write go to both arms; the one that served before goes on serving."""

    name = "mirror"
    position = 40

    def explain(self, context: FlipContext) -> list[str]:
        """See `Stage.explain`."""
        dataset, to = context.dataset, context.direction.to
        if self.done(context):
            return [f"nothing: writes go to both arms (mode {dataset.route.mode})"]
        lag = context.rooms.replication.lag(dataset, to)
        missed = f"; {lag.missed} until now" if lag.holds is not None and not lag.current else ""
        return [
            f"set mode {context.direction.mirrored}, epoch {dataset.route.epoch + 1}, between two writes",
            f"bring what the {to} arm has missed until then{missed}",
        ]

    def done(self, context: FlipContext) -> bool:
        """Say whether the route mirrors, or has got further."""
        return context.dataset.route.mode != context.direction.alone

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`.

        Raises:
            ParityMismatch: the copy that was brought, and not compared before, has other rows.
        """
        replication, direction = context.rooms.replication, context.direction
        compare_first(context.rooms, context.dataset, direction.to)
        # In this order: what is written between the two is brought with the rest, and nothing after it is missed.
        route = context.reroute(direction.mirrored, "flip.mirror")
        context.rooms.faults.at("flip:mirrored")
        if context.dataset.head_version:
            replication.catch_up(context.dataset, direction.to)
        return {"mode": route.mode, "epoch": route.epoch}

    def undo(self, context: FlipContext) -> list[str]:
        """Let writes go to the old arm alone."""
        actions = self.explain_undo(context)
        if actions:
            context.reroute(context.direction.alone, "flip.cancel")
        return actions

    def explain_undo(self, context: FlipContext) -> list[str]:
        """See `Stage.explain_undo`."""
        if context.dataset.route.mode not in (context.direction.mirrored, context.direction.switched):
            return []
        return [f"set mode {context.direction.alone}: writes go to the {context.direction.source} arm alone"]
