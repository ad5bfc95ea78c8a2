"""`lakeward flip`: brings a live dataset to the other arm, stage by stage, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands import flip_canary, flip_check, flip_ignore, flip_recheck, flip_resync
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.commands.flip_many import Order, start_many, status_of_all
from lakeward.cli.confirm import confirm
from lakeward.cli.flip_text import event_lines, next_commands, route_lines, show_steps, stage_lines
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.errors import UsageError
from lakeward.migration.options import Options

if TYPE_CHECKING:
    from lakeward.migration.flip_status import StageState

ToOption = Annotated[
    str | None,
    typer.Option(metavar="ARM", show_default=False, help="postgres or iceberg; none: the one that does not serve."),
]
DatasetsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="[DATASET]...", show_default=False, help="Their full names.")
]
SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--select",
        metavar="PATTERN",
        show_default=False,
        help="Also those whose name, with or without its catalog, is like 'sales.*'. Repeat it for more.",
    ),
]
LimitOption = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, show_default=False, help="Flip so many at most.")
]
OrderOption = Annotated[
    Order, typer.Option("--order", help="Of several: consumers before producers, the smallest first, or by name.")
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
    for module in (flip_canary, flip_check, flip_recheck, flip_resync, flip_ignore):
        module.register(group)
    app.add_typer(group, name="flip")


def start(
    session: Session,
    datasets: DatasetsArgument = None,
    select: SelectOption = None,
    to: ToOption = None,
    until: UntilOption = None,
    rows_per_second: PaceOption = None,
    max_lag: LagOption = 100,
    limit: LimitOption = None,
    order: OrderOption = Order.leaves_first,
    dry_run: DryRunOption = False,
) -> None:
    """Flip datasets to the other arm, up to the switch.

    Every stage that is not done is run, one after the other; a flip that was cut short goes on from where things stand.
    Readers and writers go on all the time. Nothing is removed: until `complete`, `revert` takes a second.
    A dataset that lives on that arm alone is left as it is.

    Several datasets are flipped one after the other, to Iceberg unless --to says otherwise, those first that no
    pipeline reads. One that fails is told with its reason, and the next one is flipped; the same command goes on with
    what is left. The exit code is that of the first failure.
    """
    options = _options(rows_per_second=rows_per_second, max_lag=max_lag)
    dataset = datasets[0] if datasets and len(datasets) == 1 and not select else None
    if dataset is None:
        if until is not None:
            raise UsageError("--until is for one dataset", safe="nothing was changed", next_step="name one dataset")
        start_many(
            session,
            datasets or (),
            select or (),
            to=to or "iceberg",
            limit=limit,
            order=order,
            options=options,
            dry_run=dry_run,
        )
        return
    with session.workspace() as workspace:
        flip = workspace.flip(dataset, session.progress_of_stage)
        if dry_run:
            states = [state for state in flip.explain(to, options) if state.automatic]
            session.show_actions(_literally(states), lakeward("flip", "start", dataset, *(("--to", to) if to else ())))
            return
        steps = flip.run(to, until=until, options=options)
        now = flip.status()
    show_steps(session, steps, now)


def status(
    session: Session,
    dataset: Annotated[
        str | None, typer.Argument(metavar="[DATASET]", help="Its full name; none: all of them.", show_default=False)
    ] = None,
) -> None:
    """Show how far the flip of a dataset is, or all flips.

    Its route, the stages that are done, how far the other arm is behind, and what happened. Without a dataset: mode,
    mirror, stage and newest comparison of each one.
    """
    if dataset is None:
        status_of_all(session)
        return
    with session.workspace() as workspace:
        now = workspace.flip(dataset).status()
    session.show(now.to_json(), [*route_lines(now), *stage_lines(now), *event_lines(now)], next_commands(now))


def verify(session: Session, dataset: DatasetArgument) -> None:
    """Compare all rows of both arms anew."""
    with session.workspace() as workspace:
        flip = workspace.flip(dataset)
        step = flip.stage("verify")
        now = flip.status()
    show_steps(session, [step], now)


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
    show_steps(session, [step], now)


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
    session.show(
        {"undone": done, **now.to_json()}, [*(done or ["nothing to undo"]), *route_lines(now)], next_commands(now)
    )


def _typed(name: str, confirmed: str | None) -> str:
    """Return the name that whoever confirms has typed or given; raises UsageError if it is another one."""
    if confirmed is None:
        confirm(name, f"--confirm {name}")
    elif confirmed != name:
        raise UsageError(
            f"--confirm {confirmed!r} is not {name}",
            safe="nothing was changed",
            next_step=f"repeat with --confirm {name}; --dry-run shows what it would do",
            name=name,
        )
    return name


def _options(rows_per_second: int | None = None, max_lag: int | None = None, confirmed: str | None = None) -> Options:
    given = {"rows_per_second": rows_per_second, "max_lag": max_lag, "confirmed": confirmed}
    return Options(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]


def _literally(states: Iterable[StageState]) -> list[str]:
    return [f"{state.name}: {action}" for state in states for action in state.actions]
