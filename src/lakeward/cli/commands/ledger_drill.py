"""`lakeward ledger drill`: kills, stops and cuts off writers, and compares what is left with a model."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import DryRunOption
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.temporary_home import temporary_home
from lakeward.cli.text import table
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.testing.drill.run import Ground, Report

PROCESS = "lakeward.cli.drill_process"
"""The program whose forks are killed."""

_MOST_SEED = 2**31


def drill(
    session: Session,
    rounds: Annotated[int, typer.Option("--rounds", min=0, metavar="N", help="So many random rounds.")] = 20,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="S", help="Replays an earlier drill; else a new one is drawn.")
    ] = None,
    cases: Annotated[
        int | None,
        typer.Option("--cases", min=0, metavar="N", help="At most so many faults at steps; else each at every step."),
    ] = None,
    flips: Annotated[
        int, typer.Option("--flips", min=0, metavar="SECONDS", help="Flip a dataset under load for so long.")
    ] = 10,
    markdown: Annotated[
        Path | None, typer.Option("--markdown", metavar="FILE", help="Also write the table to this file.")
    ] = None,
    dry_run: DryRunOption = False,
) -> None:
    """Kill writers, and check that no row is lost.

    Writers are killed, stopped and cut off; no row may be lost or there twice.

    First each fault (kill -9, SIGSTOP longer than the lease, an exception, Postgres going down) at every step of a
    write, to Postgres rows, to an Iceberg table, and to both at once. Then random rounds: three processes write to the
    same datasets, and one is killed or stopped at some instant. At last a dataset is flipped to the other arm, back
    and there again, while four processes write to it and four read it; the one that works on the flip is killed.

    It works in a temporary workspace. With --home, LAKEWARD_HOME or LAKEWARD_DATABASE_URL it works in that workspace
    and so on your own catalog and store, in a scratch catalog whose name begins with "lakeward drill"; it stays there.
    """
    chosen = seed if seed is not None else random.SystemRandom().randrange(_MOST_SEED)
    most = [] if cases is None else ["--cases", cases]
    again = lakeward("ledger", "drill", "--rounds", rounds, "--seed", chosen, *most, "--flips", flips)
    if dry_run:
        where = "the workspace that is named, in a scratch catalog" if _named(session) else "a temporary workspace"
        session.show_actions(
            [
                f"open {where}",
                f"try {'every fault' if cases is None else f'{cases} faults'} at the steps of a write",
                f"run {rounds} random rounds with seed {chosen}",
                f"flip a dataset under load for {flips} s",
            ],
            again,
        )
        return
    runner, shown = heavy("lakeward.testing.drill.run"), heavy("lakeward.testing.drill.report")
    if logging.getLogger("lakeward").level >= logging.WARNING:
        logging.getLogger("lakeward.recovery").setLevel(logging.ERROR)  # that it has work is what is meant here
    with _ground(session) as ground:
        report: Report = runner.run(runner.Plan(rounds, chosen, cases, flips), ground, session.progress)
        left = [] if ground.outage is not None else list(_left(report, ground))
    if markdown is not None:
        markdown.write_text(shown.to_markdown(report), encoding="utf-8")
    lines: list[RenderableType] = [table(shown.columns(report), shown.rows(report)), ""] if report.outcomes else []
    broken = report.violations
    lines += [*shown.summary(report), *left, *(f"VIOLATED: {what}" for what in broken)]
    lines.append("" if broken else "no row lost, none twice, every answer true")
    session.show({**shown.to_json(report), "left": left}, lines, [again] if broken else [])
    if broken:
        raise typer.Exit(1)


def _named(session: Session) -> bool:
    loaded = heavy("lakeward.wiring.places").resolve_settings(session.flags, session.settings_file)
    values = loaded.values
    somewhere = (values.home, values.database_url, values.warehouse)
    return any(each is not None for each in somewhere) or bool(values.catalog)


def _left(report: Report, ground: Ground) -> Iterator[str]:
    yield (
        f"left in {ground.rooms.database.display_url}: catalog {report.catalog!r} "
        f"with {len(report.datasets)} datasets, half of them Iceberg tables"
    )


@contextmanager
def _ground(session: Session) -> Iterator[Ground]:
    """Open the workspace, a temporary one unless another is named, and say how its processes find it."""
    opening, places, process = heavy("lakeward.wiring.opening"), heavy("lakeward.wiring.places"), heavy(PROCESS)
    runner, outage = heavy("lakeward.testing.drill.run"), heavy("lakeward.testing.drill.outage")
    loaded = heavy("lakeward.wiring.places").resolve_settings(session.flags, session.settings_file)
    values = loaded.values
    own = not _named(session)
    if not own and values.home is None and values.database_url is None:
        raise UsageError(
            "a catalog or a warehouse is set, and neither a home nor a database to go with it",
            safe="nothing was changed",
            next_step="give --home DIR (an empty one is fine), or set LAKEWARD_DATABASE_URL",
        )
    with temporary_home("lakeward-drill-") as home:
        file = session.settings_file
        with opening.open_workspace(home if own else session.home, settings_file=file, recover=False) as workspace:
            embedded = outage.EmbeddedOutage(home / "postgres", home / "cache") if own else None
            place = {
                # A home for scratch files only, so that what a killed process leaves there goes away with it.
                "home": str(home),
                "database_url": workspace.database.libpq_url,
                "warehouse": str(places.warehouse_of(values, home if own else values.home)),
                "catalog": dict(values.catalog),
                "settings_file": str(file) if file is not None else None,
            }
            yield runner.Ground(process.rooms_of(workspace), PROCESS, place, embedded)
