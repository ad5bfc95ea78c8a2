"""A flip of one dataset from one arm to the other: its stages in order, resumed from wherever things stand."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime

from lakeward.access.guard import require
from lakeward.control.audit import note
from lakeward.control.flips import FlipRecord
from lakeward.control.tree import DatasetRecord
from lakeward.discovery import discover
from lakeward.errors import ConflictError, LeaseLost, ParityMismatch, UnknownObject, UsageError
from lakeward.happenings import told
from lakeward.migration import stages
from lakeward.migration.at_work import checking, note_failure
from lakeward.migration.checking import Check, check
from lakeward.migration.directions import Direction, direction_to
from lakeward.migration.flip_status import FlipStatus, StageState, Step
from lakeward.migration.options import Limits, Options
from lakeward.migration.shadowing import put_back
from lakeward.migration.stage import FlipContext, Rooms, Stage
from lakeward.migration.watch import Watch

Tell = Callable[[str, int, int | None], None]
"""Is told a stage, how many rows it has dealt with, and of how many, if that is known."""

RUN = "flip.run"

_NEVER = datetime.fromtimestamp(0, UTC)


def all_stages() -> list[Stage]:
    """Return every stage, in order."""
    return sorted((kind() for kind in discover(stages, Stage).values()), key=lambda stage: stage.position)


class Flip:
    """The flip of one dataset. Made by `Workspace.flip`.

    Args:
        rooms: what stages work with.
        dataset: which one.
        actor: who asks, for the log.
        tell: is told of progress.
    """

    def __init__(self, rooms: Rooms, dataset: DatasetRecord, actor: str, tell: Tell | None = None) -> None:
        self._rooms = rooms
        self._dataset = dataset
        self._actor = actor
        self._tell: Tell = tell or (lambda _stage, _rows, _total: None)
        self._stages = all_stages()

    def explain(self, to: str | None = None, options: Options | None = None) -> list[StageState]:
        """Return what each stage would do now, each action literally; nothing, where `run` would do nothing.

        Args:
            to: the arm to flip to; None: that of the flip that goes on, else the arm that does not serve.
            options: how it would be carried out.
        """
        active = self._rooms.flips.active(self._dataset.id)
        direction = self._direction(active, to)
        if active is None and self._is_there(direction):
            return []
        flip = active or FlipRecord(0, self._dataset.id, direction.to, self._actor, _NEVER, None, None, None, 0)
        context = FlipContext(flip, direction, self._rooms, options or Options())
        return [_state(stage, context) for stage in self._stages]

    def check(self, to: str | None = None) -> Check:
        """Say what would become of the real values, and all else that a flip needs. Reads all rows; changes nothing.

        Args:
            to: the arm to flip to, see `explain`.
        """
        direction = self._direction(self._rooms.flips.active(self._dataset.id), to)
        return check(self._rooms, self._dataset, direction, self._tell)

    def run(self, to: str | None = None, *, until: str | None = None, options: Options | None = None) -> list[Step]:
        """Run every stage that is not done, up to the switch; a flip that was cut short goes on.

        A dataset that lives on that arm alone, and is not being flipped, is left as it is.

        Args:
            to: the arm to flip to, see `explain`.
            until: the last stage to run; None: the last one that is automatic.
            options: how it is carried out.

        Raises:
            UsageError: a flip to the other arm goes on, or there is no such stage.
            ConflictError: another process works on the flip.
            LakewardError: a stage can't be done; those before it stand.
        """
        automatic = [stage for stage in self._stages if stage.automatic]
        last = self._stage(until) if until is not None else automatic[-1]
        wanted = [stage for stage in self._stages if stage.position <= last.position and stage in (*automatic, last)]
        active = self._rooms.flips.active(self._dataset.id)
        direction = self._direction(active, to)
        if active is None and self._is_there(direction):
            return []
        self._require()
        flip = self._rooms.flips.begin(self._dataset.id, direction.to, self._actor)
        return self._work(flip, options, [stage.name for stage in wanted])

    def stage(self, name: str, options: Options | None = None) -> Step:
        """Run one stage of the flip that goes on, also if it was done before.

        Raises:
            UsageError: no flip goes on.
            LakewardError: see `run`.
        """
        flip = self._going_on()
        (step,) = self._work(flip, options, [self._stage(name).name], again=True)
        return step

    def complete(self, options: Options | None = None, *, confirm: str | None = None) -> Step:
        """Run the last stage, and end the flip.

        Args:
            options: how it is carried out.
            confirm: the dataset's name: whoever gives it knows that its old rows are removed.

        Raises:
            UsageError: the dataset's name was not confirmed, or it has not been switched.
            LakewardError: see `run`.
        """
        flip = self._going_on()
        how = options or Options()
        how = replace(how, confirmed=confirm) if confirm is not None else how
        with self._at_work(flip, how) as context:
            context.check()
            step = self._one(self._stage("complete"), context)
            put_back(context)
            self._rooms.flips.end(flip, "completed")
        return step

    def canary(self, limits: Limits, *, promote: bool = True) -> list[Step]:
        """Watch both arms for a while, and then switch; if they don't keep to the limits, let the old arm serve.

        Cut short, it changes nothing, and goes on when it is called again with the same limits.

        Args:
            limits: for how long, and what the arms have to keep to.
            promote: switch when all is well.

        Returns:
            What was found, and what the switch did, if there was one to do.

        Raises:
            UsageError: no flip goes on, or the dataset is not mirrored.
            ParityMismatch, ConflictError: the arms don't keep to the limits, and why; the old arm serves.
        """
        flip, started = self._going_on(), time.perf_counter()
        with self._at_work(flip) as context:
            switch = self._stage("switch")
            try:
                found = Watch(context, limits, self._actor).run()
            except LeaseLost:
                raise
            except (ParityMismatch, ConflictError) as error:
                undone = self._undone(switch, context)
                serves = f"the {context.direction.source} arm serves the dataset"
                error.safe = f"{'; '.join(undone)}" if undone else f"nothing was switched; {serves}, as before"
                raise
            steps = [Step("canary", found, time.perf_counter() - started)]
            if promote and not switch.done(context):
                steps.append(self._one(switch, context))
        return steps

    def revert(self) -> list[str]:
        """Let the old arm serve again; both keep getting every write. Returns what was done.

        Raises:
            UsageError: no flip goes on, or `complete` has begun; a flip to the other arm is what reverts that.
        """
        return self._undo(("complete", "switch"), None)

    def cancel(self) -> list[str]:
        """Undo every stage, the last one first, and end the flip. Returns what was done.

        Raises:
            UsageError: no flip goes on, or `complete` has begun.
        """
        return self._undo([stage.name for stage in reversed(self._stages)], "cancelled")

    def explain_undo(self, *, cancel: bool) -> list[str]:
        """Return what `revert` or `cancel` would do now."""
        flip = self._going_on()
        context = FlipContext(flip, direction_to(flip.to), self._rooms)
        return [
            action
            for stage in reversed(self._stages)
            if stage.name != "complete" and (cancel or stage.name == "switch")
            for action in stage.explain_undo(context)
        ]

    def status(self) -> FlipStatus:
        """Return where the flip stands."""
        record = self._rooms.tree.by_id(self._dataset.id)
        route = record.route
        flip = self._rooms.flips.newest(record.id)
        parity = next(iter(self._rooms.parity.newest(record.id, most=1)), None)
        base = FlipStatus(record.name, route.mode, route.primary_arm, route.mirror_arm, route.epoch, parity=parity)
        if flip is None:
            return base
        direction = direction_to(flip.to)
        context = FlipContext(flip, direction, self._rooms)
        other = direction.source if route.primary_arm == direction.to else direction.to
        going_on = flip.ended_at is None
        return FlipStatus(
            **{
                **vars(base),
                "to": flip.to,
                "outcome": flip.outcome,
                "started_by": flip.started_by,
                "owner": flip.owner,
                "lag": self._rooms.replication.lag(record, other) if going_on else None,
                "stages": tuple(_state(stage, context, explain=False) for stage in self._stages) if going_on else (),
                "events": tuple(self._rooms.flips.events(flip)),
            }
        )

    # Work ------------------------------------------------------------------------------------------------------------

    @contextmanager
    def _at_work(self, flip: FlipRecord, options: Options | None = None) -> Iterator[FlipContext]:
        self._require()
        with self._rooms.flips.held(flip, self._dataset.name) as heartbeat:
            check = checking(heartbeat, self._dataset.name)
            yield FlipContext(flip, direction_to(flip.to), self._rooms, options or Options(), self._tell, check)

    def _work(
        self, flip: FlipRecord, options: Options | None, names: Sequence[str], *, again: bool = False
    ) -> list[Step]:
        steps = []
        with self._at_work(flip, options) as context:
            for name in names:
                stage = self._stage(name)
                context.check()
                if again or not stage.done(context):
                    steps.append(self._one(stage, context))
        return steps

    @told("flip.stage", lambda flip, stage, _: {"dataset": flip._dataset.name, "stage": stage.name})
    def _one(self, stage: Stage, context: FlipContext) -> Step:
        flips, flip = self._rooms.flips, context.flip
        self._rooms.faults.at(f"flip:{stage.name}")
        flips.note(flip, stage.name, "started", self._actor)
        self._tell(stage.name, 0, None)
        before = context.dataset
        started = time.perf_counter()
        try:
            details = stage.run(context)
        except Exception as error:
            note_failure(flips, flip, stage.name, self._actor, error, seconds=time.perf_counter() - started)
            raise
        seconds = time.perf_counter() - started
        self._rooms.faults.at(f"flip:{stage.name}:ran")
        flips.note(flip, stage.name, "done", self._actor, seconds=seconds, details=details)
        self._note(before, {"stage": stage.name})
        return Step(stage.name, details, seconds)

    def _undo(self, names: Sequence[str], outcome: str | None) -> list[str]:
        flip = self._going_on()
        done: list[str] = []
        with self._at_work(flip) as context:
            for name in names:
                context.check()
                done += self._undone(self._stage(name), context)
            if outcome is not None:
                self._rooms.flips.end(flip, outcome)
        return done

    @told("flip.undo", lambda flip, stage, _: {"dataset": flip._dataset.name, "stage": stage.name})
    def _undone(self, stage: Stage, context: FlipContext) -> list[str]:
        before = context.dataset
        actions = stage.undo(context)
        if actions:
            self._note(before, {"undone": stage.name})
            self._rooms.flips.note(context.flip, stage.name, "undone", self._actor, details={"actions": actions})
        return actions

    def _require(self) -> None:
        require(RUN, self._dataset.slugs, self._dataset.name)

    def _note(self, before: DatasetRecord, what: Mapping[str, object]) -> None:
        """Write a line of the audit log: what was done, and the dataset's route before and after it."""
        after = self._rooms.tree.by_id(before.id)
        modes = [{"mode": each.route.mode, "epoch": each.route.epoch} for each in (before, after)]
        note(self._rooms.tree.database, self._actor, RUN, after.name, modes[0], {**what, **modes[1]}, after.slugs)

    def _stage(self, name: str) -> Stage:
        found = next((stage for stage in self._stages if stage.name == name), None)
        if found is None:
            raise UnknownObject.among("stage of a flip", name, [stage.name for stage in self._stages], stage=name)
        return found

    def _going_on(self) -> FlipRecord:
        flip = self._rooms.flips.active(self._dataset.id)
        if flip is None:
            raise UsageError(
                f"no flip of dataset {self._dataset.name} is under way",
                safe="nothing was changed",
                next_step=f"lakeward flip start {self._dataset.name} begins one",
                dataset=self._dataset.name,
            )
        return flip

    def _is_there(self, direction: Direction) -> bool:
        """Say whether the dataset lives where a flip would bring it."""
        return self._rooms.tree.by_id(self._dataset.id).route.mode == direction.final

    def _direction(self, active: FlipRecord | None, to: str | None) -> Direction:
        if active is not None:
            if to is not None and to != active.to:
                raise ConflictError(
                    f"dataset {self._dataset.name} is being flipped to the {active.to} arm",
                    safe="nothing was changed",
                    next_step=f"lakeward flip cancel {self._dataset.name}, or go on with it",
                    dataset=self._dataset.name,
                )
            return direction_to(active.to)
        primary = self._rooms.tree.by_id(self._dataset.id).route.primary_arm
        return direction_to(to or {"postgres": "iceberg", "iceberg": "postgres"}[primary])


def _state(stage: Stage, context: FlipContext, explain: bool = True) -> StageState:
    about = (type(stage).__doc__ or "").splitlines()[0]
    actions = tuple(stage.explain(context)) if explain else ()
    undo = tuple(stage.explain_undo(context)) if context.flip.id else ()
    done = stage.done(context) if context.flip.id else False
    return StageState(stage.name, about, done, stage.automatic, actions, undo)
