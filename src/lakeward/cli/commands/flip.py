"""`lakeward flip`: brings a live dataset to the other arm, stage by stage, and back."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.confirm import confirm
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import printable
from lakeward.migration.options import Options

if TYPE_CHECKING:
    from lakeward.control.flips import FlipEvent
    from lakeward.migration.flip import FlipStatus, StageState, Step

WIDE = 80
"""The width of a terminal that every line of `flip status` fits in."""

ToOption = Annotated[
    str | None,
    typer.Option(metavar="ARM", show_default=False, help="postgres or iceberg; none: the one that does not serve."),
]
UntilOption = Annotated[
    str | None, typer.Option(metavar="STAGE", show_default=False, help="The last stage to run; none: switch.")
]
PaceOption = Annotated[
    int | None,
    typer.Option("--rows-per-second", min=1, show_default=False, help="Read no faster than this in the backfill."),
]
LagOption = Annotated[
    int, typer.Option("--max-lag", min=0, help="Refuse to switch a mirror that is behind by more versions.")
]
ConfirmOption = Annotated[
    str | None, typer.Option("--confirm", metavar="DATASET", show_default=False, help="The name, instead of typing it.")
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Flips of datasets between the arms.", no_args_is_help=True)
    for name, run in (
        ("start", start),
        ("status", status),
        ("verify", verify),
        ("switch", switch),
        ("revert", revert),
        ("complete", complete),
        ("cancel", cancel),
    ):
        command(group, name)(run)
    app.add_typer(group, name="flip")


def start(
    session: Session,
    dataset: DatasetArgument,
    to: ToOption = None,
    until: UntilOption = None,
    rows_per_second: PaceOption = None,
    max_lag: LagOption = 100,
    dry_run: DryRunOption = False,
) -> None:
    """Flip a dataset to the other arm, up to the switch.

    Every stage that is not done is run, one after the other; a flip that was cut short goes on from where things stand.
    Readers and writers go on all the time. Nothing is removed: until `complete`, `revert` takes a second.
    """
    with session.workspace() as workspace:
        flip = workspace.flip(dataset, session.progress_of_stage)
        options = _options(rows_per_second=rows_per_second, max_lag=max_lag)
        if dry_run:
            states = [state for state in flip.explain(to, options) if state.automatic]
            session.show_actions(_literally(states), lakeward("flip", "start", dataset, *(("--to", to) if to else ())))
            return
        steps = flip.run(to, until=until, options=options)
        now = flip.status()
    _show_steps(session, steps, now)


def status(session: Session, dataset: DatasetArgument) -> None:
    """Show how far the flip of a dataset is.

    Its route, the stages that are done, how far the other arm is behind, and what happened.
    """
    with session.workspace() as workspace:
        now = workspace.flip(dataset).status()
    session.show(now.to_json(), [*_route(now), *_stages(now), *_events(now)], _next(now))


def verify(session: Session, dataset: DatasetArgument) -> None:
    """Compare all rows of both arms anew."""
    with session.workspace() as workspace:
        flip = workspace.flip(dataset)
        step = flip.stage("verify")
        now = flip.status()
    _show_steps(session, [step], now)


def switch(session: Session, dataset: DatasetArgument, max_lag: LagOption = 100, dry_run: DryRunOption = False) -> None:
    """Let the other arm serve the dataset.

    One change of the route, between two writes. The arm that served before keeps getting every write.
    """
    _one(session, dataset, "switch", _options(max_lag=max_lag), dry_run=dry_run)


def revert(session: Session, dataset: DatasetArgument, dry_run: DryRunOption = False) -> None:
    """Let the arm serve again that served before.

    Nothing is lost: it got every write. Both arms keep getting them, so that `switch` is as quick. After `complete`,
    a flip to the other arm is what reverts it.
    """
    _undone(session, dataset, "revert", dry_run=dry_run)


def cancel(
    session: Session, dataset: DatasetArgument, yes: ConfirmOption = None, dry_run: DryRunOption = False
) -> None:
    """Undo every stage and end the flip.

    The arm that served before serves alone, and the other arm's copy is removed. The dataset's name has to be typed,
    or given.
    """
    _undone(session, dataset, "cancel", dry_run=dry_run, confirmed=yes)


def complete(
    session: Session, dataset: DatasetArgument, yes: ConfirmOption = None, dry_run: DryRunOption = False
) -> None:
    """End the mirroring, and remove the old rows.

    All rows are compared once more. Of a flip to Iceberg, the dataset's rows then leave Postgres, and with them old
    versions that only it has. The dataset's name has to be typed, or given.
    """
    _one(session, dataset, "complete", _options(), dry_run=dry_run, confirmed=yes)


def _one(
    session: Session,
    dataset: str,
    name: str,
    options: Options,
    *,
    dry_run: bool,
    confirmed: str | None = None,
) -> None:
    """Run one stage, or show what it would do."""
    with session.workspace() as workspace:
        flip = workspace.flip(dataset, session.progress_of_stage)
        state = next(each for each in flip.explain(options=options) if each.name == name)
        if dry_run:
            session.show_actions(list(state.actions), lakeward("flip", name, dataset))
            return
        if name == "complete":
            for action in state.actions if confirmed is None else ():
                session.say(action)
            step = flip.complete(_options(confirmed=_typed(flip.status().dataset, confirmed)))
        else:
            step = flip.stage(name, options)
        now = flip.status()
    _show_steps(session, [step], now)


def _undone(session: Session, dataset: str, name: str, *, dry_run: bool, confirmed: str | None = None) -> None:
    with session.workspace() as workspace:
        flip = workspace.flip(dataset)
        actions = flip.explain_undo(cancel=name == "cancel")
        if dry_run:
            session.show_actions(actions, lakeward("flip", name, dataset))
            return
        if name == "cancel":
            for action in actions if confirmed is None else ():
                session.say(action)
            _typed(flip.status().dataset, confirmed)
        done = flip.cancel() if name == "cancel" else flip.revert()
        now = flip.status()
    session.show({"undone": done, **now.to_json()}, [*(done or ["nothing to undo"]), *_route(now)], _next(now))


def _typed(name: str, confirmed: str | None) -> str:
    """Return the name that whoever confirms has typed or given; raises UsageError if it is another one."""
    if confirmed is None:
        confirm(name, f"--confirm {name}")
        return name
    return confirmed


def _options(rows_per_second: int | None = None, max_lag: int | None = None, confirmed: str | None = None) -> Options:
    given = {"rows_per_second": rows_per_second, "max_lag": max_lag, "confirmed": confirmed}
    return Options(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def _literally(states: Iterable[StageState]) -> list[str]:
    return [f"{state.name}: {action}" for state in states for action in state.actions]


def _show_steps(session: Session, steps: list[Step], now: FlipStatus) -> None:
    lines: list[RenderableType] = [f"{step.stage}: {_told(step.details)} ({step.seconds:.2f} s)" for step in steps] or [
        "nothing was left to do"
    ]
    session.show({"steps": [step.to_json() for step in steps], **now.to_json()}, [*lines, *_route(now)], _next(now))


def _told(details: object) -> str:
    assert isinstance(details, dict)
    return ", ".join(f"{name} {_plain(value)}" for name, value in details.items())


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return f"({_told(value)})"
    if isinstance(value, list):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value)


def _route(now: FlipStatus) -> list[RenderableType]:
    mirror = f", mirrored to {now.mirror}" if now.mirror else ""
    lines: list[RenderableType] = [
        f"{now.dataset}: served by {now.primary}{mirror} (mode {now.mode}, epoch {now.epoch})"
    ]
    if now.lag is not None and not now.lag.current:
        holds = f"holds version {now.lag.holds}" if now.lag.holds is not None else "holds no version"
        why = f": {now.lag.error}" if now.lag.error else ""
        lines.append(f"the {now.lag.arm} arm {holds}, and is behind by {now.lag.missed}{why}")
    return lines


def _stages(now: FlipStatus) -> list[RenderableType]:
    if now.to is None:
        return ["it was never flipped"]
    if now.outcome is not None:
        return [f"the newest flip, to {now.to}, was {now.outcome}"]
    held = [f"{now.owner} works on it"] if now.owner else []
    stages = [_folded(f"{each.name:<9} {'done' if each.done else '':<4}  {each.about}", 16) for each in now.stages]
    return [f"flip to {now.to}, begun by {now.started_by}", *held, "", *stages]


def _events(now: FlipStatus) -> list[RenderableType]:
    """Return a line for each thing that happened; that a stage has started only if it has not ended since."""
    latest = now.events[-1:]
    told = [each for each in now.events if each.event != "started" or each in latest]
    return ["", *map(_event, told)] if told else []


def _event(event: FlipEvent) -> str:
    took = f" in {event.seconds:.2f} s" if event.seconds is not None else ""
    told = {name: value for name, value in event.details.items() if name != "actions"}
    what = "; ".join(part for part in (*event.details.get("actions", ()), _told(told)) if part)
    after = f": {what}" if what else ""
    return _folded(f"{event.at:%Y-%m-%d %H:%M:%S}  {event.stage:<9} {event.event}{took}{after}", 21)


def _folded(line: str, indent: int) -> str:
    """Return a line as several ones that a terminal shows whole."""
    return "\n".join(textwrap.wrap(printable(line), WIDE, subsequent_indent=" " * indent, break_long_words=False))


def _next(now: FlipStatus) -> list[str]:
    if now.to is None or now.outcome is not None:
        return [lakeward("flip", "start", now.dataset, "--dry-run")]
    if now.primary != now.to:
        return [lakeward("flip", "start", now.dataset), lakeward("flip", "cancel", now.dataset, "--dry-run")]
    return [lakeward("flip", "revert", now.dataset), lakeward("flip", "complete", now.dataset, "--dry-run")]
