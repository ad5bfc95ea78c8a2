"""Gives the arm that does not serve a new copy: after a comparison has found that the one it has is not equal.

Nothing of the old copy is built upon. Readers are served by the other arm all the time, and writers go on.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from lakeward.control.flips import FlipRecord
from lakeward.control.routes import ARM_MODES
from lakeward.control.tree import DatasetRecord
from lakeward.errors import UsageError
from lakeward.migration.at_work import checking, note_failure
from lakeward.migration.comparing import compare, compare_first
from lakeward.migration.directions import Direction, direction_to
from lakeward.migration.options import Options
from lakeward.migration.stage import Details, FlipContext, Rooms
from lakeward.migration.stages.backfill import paced

STAGE = "resync"
"""What its events are kept under. It is no stage: no flip has to go through it."""

Tell = Callable[[str, int, int | None], None]


@dataclass(frozen=True)
class _Plan:
    """What there is to do.

    Args:
        dataset: as it is now.
        flip: the one that goes on; None: the dataset is mirrored without.
        direction: of it, or to the arm that gets the copy.
        other: the arm that gets it.
        mode: of the route, before this began and when it is done.
        alone: of the route meanwhile.
    """

    dataset: DatasetRecord
    flip: FlipRecord | None
    direction: Direction
    other: str
    mode: str
    alone: str


def explain(rooms: Rooms, dataset: DatasetRecord) -> list[str]:
    """Return what `resync` would do, each action literally. Changes nothing.

    Raises:
        UsageError: the other arm has no copy and no mirror.
    """
    plan = _plan(rooms, dataset)
    mirrored = plan.mode != plan.alone
    lost = len(rooms.replication.only_on(plan.dataset, plan.other))
    and_so = f"; {lost:,} old versions that are nowhere else can't be read any more" if lost else ""
    read = (
        f"read all {plan.dataset.row_count:,} rows from the {plan.dataset.route.primary_arm} arm, with row ids, "
        f"positions and versions, and write them to the {plan.other} arm"
    )
    again = f"set mode {plan.mode}: every write goes to both arms again; bring what was written meanwhile"
    return [
        *([f"set mode {plan.alone}: writes go to the {plan.dataset.route.primary_arm} arm alone"] if mirrored else []),
        f"remove the copy of {plan.dataset.name} from the {plan.other} arm{and_so}",
        read,
        "compare all rows of both arms; if they are equal, the copy counts",
        *([again] if mirrored else []),
    ]


def resync(rooms: Rooms, dataset: DatasetRecord, actor: str, tell: Tell, options: Options | None = None) -> Details:
    """Remove the copy that does not serve, and make a new one. Cut short, it is repeated and starts from the beginning.

    Args:
        rooms: the parts of the workspace.
        dataset: which one.
        actor: who asks, for the log.
        tell: is told how many rows were brought, and of how many.
        options: how fast it may read.

    Raises:
        UsageError: the other arm has no copy and no mirror; or somebody keeps a version that only it holds; or the copy
            is as it was recorded, and the arm that serves is not.
        ConflictError: another process works on the flip.
        ParityMismatch: the new copy differs, too.
    """
    plan = _plan(rooms, dataset)
    flip = plan.flip or rooms.flips.begin(dataset.id, plan.direction.to, actor)
    with rooms.flips.held(flip, dataset.name) as heartbeat:
        check = checking(heartbeat, dataset.name)
        context = FlipContext(flip, plan.direction, rooms, options or Options(), tell, check)
        rooms.flips.note(flip, STAGE, "started", actor, details={"mode": plan.mode})
        try:
            done = _anew(context, plan)
        except Exception as error:
            note_failure(rooms.flips, flip, STAGE, actor, error)
            raise
        rooms.flips.note(flip, STAGE, "done", actor, details=done)
        if plan.flip is None:
            # It was begun for this alone, and the dataset stays mirrored as it was.
            rooms.flips.end(flip, "cancelled")
    return done


def _anew(context: FlipContext, plan: _Plan) -> Details:
    rooms, replication = context.rooms, context.rooms.replication
    if context.dataset.route.mode != plan.alone:
        context.reroute(plan.alone, "flip.cancel")
    replication.drain(context.dataset, plan.other)
    rooms.faults.at("flip:resync:drained")
    context.check()
    brought = replication.backfill(context.dataset, plan.other, watched=lambda rows: paced(rows, context))
    found = compare_first(rooms, context.dataset, plan.other)
    if plan.mode != plan.alone:
        context.reroute(plan.mode, "flip.mirror")
        replication.catch_up(context.dataset, plan.other)
    if found is None:
        found = compare(rooms, context.dataset, plan.other)
    return {"mode": plan.mode, "brought": brought.row_count, **found.to_json()}


def _plan(rooms: Rooms, dataset: DatasetRecord) -> _Plan:
    dataset = rooms.tree.by_id(dataset.id)
    route, flip = dataset.route, rooms.flips.active(dataset.id)
    direction = direction_to(flip.to if flip is not None else _other_than(route.primary_arm))
    other = _other_than(route.primary_arm)
    mode = _mode_before(rooms, flip) or route.mode
    alone = ARM_MODES[route.primary_arm]
    if mode == alone and not rooms.replication.has_remains(dataset, other):
        raise UsageError(
            f"dataset {dataset.name} has no copy on the {other} arm",
            safe="nothing was changed",
            next_step=f"lakeward flip start {dataset.name} --to {other}",
            dataset=dataset.name,
        )
    found = rooms.parity.mismatch(dataset.id)
    if found is not None and found.details.get("as_recorded") == [other]:
        raise UsageError(
            f"dataset {dataset.name}: the {route.primary_arm} arm, which serves, is not as it was recorded, and "
            f"the copy on the {other} arm is",
            safe="nothing was changed",
            next_step=f"bring the rows of the {route.primary_arm} arm back from a backup, or write them anew; then "
            f"lakeward verify {dataset.name}",
            dataset=dataset.name,
        )
    return _Plan(dataset, flip, direction, other, mode, alone)


def _mode_before(rooms: Rooms, flip: FlipRecord | None) -> str | None:
    """Return the mode that a resync which was cut short has to bring back; None: there is none such."""
    events = [event for event in rooms.flips.events(flip) if event.stage == STAGE] if flip is not None else []
    if not events or events[-1].event == "done":
        return None
    begun = next(event for event in events if event.event == "started" and event.details.get("mode"))
    return str(begun.details["mode"])


def _other_than(arm: str) -> str:
    return next(each for each in ARM_MODES if each != arm)
