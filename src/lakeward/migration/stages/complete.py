"""The last stage, and the only one that removes anything."""

from __future__ import annotations

from collections.abc import Collection

from lakeward.errors import UsageError
from lakeward.migration.comparing import compare, compare_first
from lakeward.migration.stage import Details, FlipContext, Stage


class Complete(Stage):
    """Ends the mirroring; to Iceberg, removes the rows from Postgres, after all rows were compared once more."""

    name = "complete"
    position = 70
    automatic = False

    def explain(self, context: FlipContext) -> list[str]:
        """See `Stage.explain`."""
        dataset, direction = context.dataset, context.direction
        if self.done(context):
            return [f"nothing: the flip to {direction.to} is complete"]
        if dataset.route.primary_arm != direction.to:
            return [
                f"refuse: the {direction.source} arm still serves; `lakeward flip start {dataset.name}` comes first"
            ]
        actions = [
            f"compare all {dataset.row_count:,} rows of both arms at the head",
            f"set mode {direction.final}: writes go to the {direction.to} arm alone",
        ]
        if direction.source == "postgres":
            lost = context.rooms.replication.only_on(dataset, "postgres")
            actions.append("delete the dataset's rows from Postgres, in chunks")
            if lost:
                them = "them" if len(lost) > 1 else "it"
                actions.append(f"lose {_named(lost)}: only Postgres has {them}, and nobody can read {them} any more")
        else:
            actions.append("leave the Iceberg table as it is; its versions stay readable until they expire")
        return actions

    def done(self, context: FlipContext) -> bool:
        """Say whether the other arm alone serves, and nothing is left to remove."""
        dataset, direction = context.dataset, context.direction
        if dataset.route.mode != direction.final:
            return False
        return direction.source != "postgres" or not context.rooms.replication.has_remains(dataset, "postgres")

    def run(self, context: FlipContext) -> Details:
        """See `Stage.run`.

        Raises:
            UsageError: the dataset's name was not given, or it has not been switched.
            ParityMismatch: the arms differ; nothing was removed.
        """
        dataset, direction = context.dataset, context.direction
        confirmed = context.options.confirmed
        if confirmed != dataset.name:
            wrong = f"{confirmed!r} is not {dataset.name}; " if confirmed is not None else ""
            raise UsageError(
                f"{wrong}completing the flip of {dataset.name} can't be taken back in a second",
                safe="nothing was changed",
                next_step=f"lakeward flip complete {dataset.name} --confirm {dataset.name}",
                dataset=dataset.name,
            )
        if dataset.route.primary_arm != direction.to:
            raise UsageError(
                f"dataset {dataset.name} is still served by the {direction.source} arm",
                safe="nothing was changed",
                next_step=f"lakeward flip start {dataset.name} --to {direction.to}",
                dataset=dataset.name,
            )
        told: Details = {"mode": direction.final}
        if dataset.route.mode == direction.switched:
            if dataset.head_version:
                compare_first(context.rooms, dataset, direction.source)
                context.rooms.replication.catch_up(dataset, direction.source)
                found = compare(context.rooms, context.dataset, direction.source)
                told["compared"] = {"version": found.version, "rows": found.rows}
            context.reroute(direction.final, "flip.complete")
        context.rooms.faults.at("flip:final")
        context.check()
        if direction.source == "postgres":
            lost = context.rooms.replication.only_on(context.dataset, "postgres")
            told["removed"] = context.rooms.replication.drain(context.dataset, "postgres")
            if lost:
                told["unreadable"] = _named(lost)
        return told

    def undo(self, context: FlipContext) -> list[str]:
        """Refuse if it has begun: what it removes comes back by a flip to the other arm, which reads all rows."""
        dataset, direction = context.dataset, context.direction
        if dataset.route.mode != direction.final:
            return []
        raise UsageError(
            f"the flip of {dataset.name} is complete",
            safe="nothing was changed",
            next_step=f"lakeward flip complete {dataset.name} ends it; "
            f"then lakeward flip start {dataset.name} --to {direction.source} flips it back",
            dataset=dataset.name,
        )


def _named(versions: Collection[int]) -> str:
    if len(versions) == 1:
        return f"version {min(versions)}"
    return f"{len(versions):,} versions, {min(versions)} to {max(versions)}"
