"""What the page of a flip shows: its stages as lights, how far the work is, and what can be done next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from lakeward.control.flips import FlipEvent
from lakeward.jobs.job import Job
from lakeward.migration.flip import Flip
from lakeward.migration.flip_status import FlipStatus, StageState
from lakeward.migration.phrases import told
from lakeward.server.web.words import duration, number, short_number

MIRRORED = "mirror"
"""The last stage that `start` runs: from then on the dataset is on both arms, and a switch takes a moment."""


@dataclass(frozen=True)
class Light:
    """One stage.

    Args:
        name, about: the stage.
        state: `done`, `running`, `failed` or `waiting`.
        told: what it found, or how far it is.
        seconds: how long it took.
        share: how much of it is done, from 0 to 1, where that is known.
    """

    name: str
    about: str
    state: str
    told: str = ""
    seconds: float | None = None
    share: float | None = None


@dataclass(frozen=True)
class Act:
    """Something that can be done to a flip.

    Args:
        key, label: its word in addresses, and on its button.
        job: the options of the job that does it.
        kind: `main` for what leads on, `danger` for what takes something away, else empty.
        typed: the dataset's name has to be typed.
    """

    key: str
    label: str
    job: Mapping[str, Any]
    kind: str = ""
    typed: bool = False


def acts(now: FlipStatus) -> list[Act]:
    """Return what can be done to a dataset's flip as it stands, in the order of its buttons."""
    start = Act("start", "Start", {"do": "run", "until": MIRRORED}, "main")
    if now.to is None or now.outcome is not None:
        return [start]
    verify = Act("verify", "Verify", {"do": "stage", "stage": "verify"})
    revert = Act("revert", "Revert", {"do": "revert"})
    complete = Act("complete", "Complete", {"do": "complete"}, "danger", typed=True)
    cancel = Act("cancel", "Cancel the flip", {"do": "cancel"}, "danger", typed=True)
    if now.primary == now.to:
        return [verify, revert, *([complete] if now.next_stage is not None else []), cancel]
    if now.mirror is None or _before(now, MIRRORED):
        return [Act("start", "Go on", start.job, "main"), cancel]
    return [verify, Act("switch", "Switch", {"do": "run"}, "main"), cancel]


def act_named(now: FlipStatus, key: str) -> Act | None:
    """Return what can be done by its word; None: not as the flip stands."""
    return next((each for each in acts(now) if each.key == key), None)


def actions_of(flip: Flip, act: Act) -> list[tuple[str, str]]:
    """Return what an act would do now, literally: pairs of the stage that does it and the action."""
    if act.key in ("revert", "cancel"):
        return [("", each) for each in flip.explain_undo(cancel=act.key == "cancel")]
    states = flip.explain()
    names = [each.name for each in states]
    if act.key == "start":
        states = states[: names.index(MIRRORED) + 1] if states else []
    elif act.key == "switch":
        states = [each for each in states if each.automatic and not each.done]
    else:
        states = [each for each in states if each.name == act.key]
    return [(state.name, action) for state in states for action in state.actions]


def lights(now: FlipStatus, states: Sequence[StageState], job: Job | None) -> list[Light]:
    """Return the stages of a flip.

    Args:
        now: where it stands.
        states: the stages of the flip that goes on, or of the one that could begin.
        job: what works on it, if it runs.
    """
    events = now.events if now.outcome is None else ()
    newest = {event.stage: event for event in events}
    running = dict(job.progress) if job is not None and job.status == "running" else {}
    return [_light(state, newest.get(state.name), running.get(state.name), job) for state in states]


def _light(state: StageState, event: FlipEvent | None, progress: Mapping[str, Any] | None, job: Job | None) -> Light:
    if progress is not None and (event is None or event.event == "started"):
        return _running(state, event, progress)
    if event is not None and event.event == "started" and job is not None:
        return Light(state.name, state.about, "running")
    if event is not None and event.event == "failed":
        return Light(state.name, state.about, "failed", told(dict(event.details)), event.seconds)
    if not state.done:
        return Light(state.name, state.about, "waiting")
    details = {name: value for name, value in event.details.items() if name != "actions"} if event is not None else {}
    return Light(state.name, state.about, "done", told(details), event.seconds if event is not None else None)


def _running(state: StageState, event: FlipEvent | None, progress: Mapping[str, Any]) -> Light:
    done, total, unit = progress["done"], progress["total"], progress["unit"]
    of = f" of {number(total)}" if total else ""
    parts = [f"{number(done)}{of} {unit}"]
    seconds = (datetime.now(UTC) - event.at).total_seconds() if event is not None else 0
    if done and seconds > 1:
        rate = done / seconds
        parts.append(f"{short_number(round(rate))} {unit}/s")
        if total and total > done:
            parts.append(f"{duration((total - done) / rate)} left")
    share = min(1.0, done / total) if total else None
    return Light(state.name, state.about, "running", ", ".join(parts), None, share)


def _before(now: FlipStatus, stage: str) -> bool:
    """Say whether a stage, or one before it, is still to be done."""
    names = [each.name for each in now.stages]
    return now.next_stage is not None and names.index(now.next_stage) <= names.index(stage)
