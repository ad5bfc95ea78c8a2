"""What the commands of `lakeward flip` print: the steps of a flip, its route and stages, and what happened."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from rich.console import RenderableType

from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import printable
from lakeward.migration.phrases import told

if TYPE_CHECKING:
    from lakeward.control.flips import FlipEvent
    from lakeward.migration.flip_status import FlipStatus, Step

WIDE = 80
"""The width of a terminal that every line of `flip status` fits in."""


def show_steps(session: Session, steps: list[Step], now: FlipStatus) -> None:
    """Print what stages did, and where the flip stands now."""
    lines: list[RenderableType] = [f"{step.stage}: {told(step.details)} ({step.seconds:.2f} s)" for step in steps] or [
        "nothing was left to do"
    ]
    session.show(
        {"steps": [step.to_json() for step in steps], **now.to_json()}, [*lines, *route_lines(now)], next_commands(now)
    )


def route_lines(now: FlipStatus) -> list[RenderableType]:
    """Return the route of a dataset, and how far the other arm is behind."""
    mirror = f", mirrored to {now.mirror}" if now.mirror else ""
    lines: list[RenderableType] = [
        f"{now.dataset}: served by {now.primary}{mirror} (mode {now.mode}, epoch {now.epoch})"
    ]
    if now.lag is not None and not now.lag.current:
        holds = f"holds version {now.lag.holds}" if now.lag.holds is not None else "holds no version"
        if now.lag.waits is not None:
            holds = f"has a copy of version {now.lag.waits} that is still to be compared"
        why = f": {now.lag.error}" if now.lag.error else ""
        lines.append(f"the {now.lag.arm} arm {holds}, and is behind by {now.lag.missed}{why}")
    return lines


def stage_lines(now: FlipStatus) -> list[RenderableType]:
    """Return the stages of the flip that goes on, or how the newest one ended."""
    if now.to is None:
        return ["it was never flipped"]
    if now.outcome is not None:
        return [f"the newest flip, to {now.to}, was {now.outcome}"]
    held = [f"{now.owner} works on it"] if now.owner else []
    stages = [_folded(f"{each.name:<9} {'done' if each.done else '':<4}  {each.about}", 16) for each in now.stages]
    return [f"flip to {now.to}, begun by {now.started_by}", *held, "", *stages]


def event_lines(now: FlipStatus) -> list[RenderableType]:
    """Return a line for each thing that happened; that a stage has started only if it has not ended since."""
    latest = now.events[-1:]
    shown = [each for each in now.events if each.event != "started" or each in latest]
    return ["", *map(_event, shown)] if shown else []


def _event(event: FlipEvent) -> str:
    took = f" in {event.seconds:.2f} s" if event.seconds is not None else ""
    details = {name: value for name, value in event.details.items() if name != "actions"}
    what = "; ".join(part for part in (*event.details.get("actions", ()), told(details)) if part)
    after = f": {what}" if what else ""
    return _folded(f"{event.at:%Y-%m-%d %H:%M:%S}  {event.stage:<9} {event.event}{took}{after}", 21)


def _folded(line: str, indent: int) -> str:
    """Return a line as several ones that a terminal shows whole."""
    return "\n".join(textwrap.wrap(printable(line), WIDE, subsequent_indent=" " * indent, break_long_words=False))


def next_commands(now: FlipStatus) -> list[str]:
    """Return the commands that lead on."""
    if now.to is None or now.outcome is not None:
        return [lakeward("flip", "start", now.dataset, "--dry-run")]
    if now.primary != now.to:
        return [lakeward("flip", "start", now.dataset), lakeward("flip", "cancel", now.dataset, "--dry-run")]
    return [lakeward("flip", "revert", now.dataset), lakeward("flip", "complete", now.dataset, "--dry-run")]
