"""`lakeward flip start` of many datasets, and `lakeward flip status` of all."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import typer
from rich.console import RenderableType

from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table
from lakeward.errors import UsageError
from lakeward.migration.options import Options

if TYPE_CHECKING:
    from lakeward.migration.bulk import Outcome
    from lakeward.migration.flip_status import FlipStatus


class Order(StrEnum):
    """The order of datasets."""

    leaves_first = "leaves-first"
    size = "size"
    name = "name"


def start_many(
    session: Session,
    names: Sequence[str],
    select: Sequence[str],
    *,
    to: str,
    limit: int | None,
    order: Order,
    options: Options,
    dry_run: bool,
) -> None:
    """Flip many datasets, one after the other; one that fails is told at the end, and those after it are flipped."""
    if not names and not select:
        raise UsageError(
            "no dataset is named",
            safe="nothing was changed",
            next_step="name datasets, or give a pattern: --select 'sales.*'",
        )
    again = _again(names, select, to, limit, order)
    outcomes: list[Outcome] = []
    with session.workspace() as workspace:
        flips = workspace.bulk_flip(session.progress_of_stage)
        chosen = flips.choose(names, select, order.value)
        if dry_run:
            actions = [
                f"{record.name}: {state.name}: {action}"
                for record, states in flips.explain(chosen, to, limit, options)
                for state in states
                for action in state.actions
            ]
            session.show_actions(actions, again)
            return
        for number, outcome in enumerate(flips.run(chosen, to, limit, options), start=1):
            outcomes.append(outcome)
            session.say(f"{number} of {len(chosen)}: {_told(outcome)}")
    counts = {kind: sum(each.outcome == kind for each in outcomes) for kind in ("flipped", "done", "failed", "left")}
    failed = [each for each in outcomes if each.outcome == "failed"]
    summary = ", ".join(f"{counted(count, 'dataset')} {kind}" for kind, count in counts.items() if count)
    steps = [lakeward("flip", "status"), *([again] if failed or counts["left"] else [])]
    session.show({"to": to, **counts, "datasets": [each.to_json() for each in outcomes]}, [summary], steps)
    if failed:
        raise typer.Exit(failed[0].exit_code)


def status_of_all(session: Session) -> None:
    """Show mode, mirror, stage and newest comparison of every dataset."""
    with session.workspace() as workspace:
        found = [workspace.flip(each.name).status() for each in workspace.datasets()]
    columns = ("dataset", "mode", "primary", "mirror behind", "to", "stage", "last comparison")
    lines: list[RenderableType] = [table(columns, map(_row, found), ("mirror behind",)) if found else "no datasets yet"]
    going_on = [each.dataset for each in found if each.stages]
    steps = [lakeward("flip", "status", name) for name in going_on[:3]]
    session.show({"datasets": [each.to_json() for each in found]}, lines, steps)


def _row(now: FlipStatus) -> tuple[object, ...]:
    behind = "" if now.mirror is None or now.lag is None else "0" if now.lag.current else f"{now.lag.versions:,}"
    stage = now.next_stage or now.outcome or ""
    parity = now.parity
    compared = "" if parity is None else f"{_finding(parity.equal)} at {parity.version} ({parity.kind})"
    return now.dataset, now.mode, now.primary, behind, now.to or "", stage, compared


def _finding(equal: bool | None) -> str:
    return "not possible" if equal is None else "equal" if equal else "DIFFERENT"


def _told(outcome: Outcome) -> str:
    what = {"done": "was done before", "left": "left for later: the limit is reached"}.get(outcome.outcome)
    if outcome.reason is not None:
        what = f"failed: {outcome.reason}"
    seconds = sum(step.seconds for step in outcome.steps)
    return f"{outcome.dataset}: {what or f'flipped in {seconds:.1f} s'}"


def _again(names: Sequence[str], select: Sequence[str], to: str, limit: int | None, order: Order) -> str:
    words = [*names, *(word for each in select for word in ("--select", each)), "--to", to]
    words += ["--limit", str(limit)] if limit is not None else []
    words += ["--order", order.value] if order is not Order.leaves_first else []
    return lakeward("flip", "start", *words)
