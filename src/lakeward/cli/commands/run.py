"""`lakeward run`: one query, once, into a dataset."""

from __future__ import annotations

import sys
import time
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from lakeward.cli.columns import parse_names
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_create import ArmOption, KeyOption
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import table
from lakeward.control.routes import check_arm
from lakeward.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "run")(run)


def run(
    session: Session,
    sql: Annotated[str, typer.Argument(metavar="SQL", help="One SELECT; - reads it from standard input.")],
    into: Annotated[
        str, typer.Option("--into", metavar="DATASET", help="Gets the rows; made if missing.", show_default=False)
    ],
    source: Annotated[
        list[str] | None,
        typer.Option("--source", metavar="NAME=DATASET", help="What the query reads by a short name; repeat it."),
    ] = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", metavar="NAME", help="As in a pipeline. Needed where the dataset has rows; else replace."
        ),
    ] = None,
    key: KeyOption = None,
    arm: ArmOption = None,
    where: Annotated[
        str | None,
        typer.Option("--where", metavar="PREDICATE", help="A split: rows for which it is not true go to --rest."),
    ] = None,
    rest: Annotated[
        str | None, typer.Option("--rest", metavar="DATASET", help="Gets all other rows of a split.")
    ] = None,
    allow_empty: Annotated[
        bool, typer.Option("--allow-empty", help="Let replace or mirror leave the dataset without rows.")
    ] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Run one query once into a dataset, without a project.

    The query reads datasets by their full names (FROM main.raw.orders) or by those of --source. It is checked, run and
    written as in a pipeline; what a pipeline expects of the dataset is expected here, too. Nothing of it is stored but
    the version that it writes.
    """
    check_arm(arm)
    one_off = heavy("lakeward.pipelines.one_off")
    request = one_off.RunRequest(
        sys.stdin.read() if sql == "-" else sql,
        into,
        _sources(source or []),
        strategy,
        parse_names(key or []),
        arm,
        allow_empty,
        where,
        rest,
    )
    if dry_run:
        with session.workspace() as workspace:
            planned = workspace.pipelines.plan_run(request)
        session.show_actions(planned.actions, "the same command without --dry-run", planned.warnings)
        return

    def told(progress: Any) -> None:
        session.progress(f"writing {progress.dataset}", progress.rows)

    started = time.monotonic()
    with session.workspace() as workspace:
        result = workspace.pipelines.run(request, told)
    seconds = time.monotonic() - started
    columns = ("dataset", "mode", "rows in", "rows now", "version")
    rows = [
        (each.dataset, each.verb, f"{each.rows_in:,}", f"{each.row_count:,}", each.version)
        for each in result.transactions
    ]
    lines: list[RenderableType] = [table(columns, rows, columns[2:]), f"run in {seconds:.1f} s"]
    lines += [f"warning: {warning}" for warning in result.warnings]
    steps = [lakeward("dataset", "preview", result.transactions[0].dataset)]
    session.show({**result.to_json(), "seconds": round(seconds, 3)}, lines, steps)


def _sources(given: list[str]) -> dict[str, str]:
    sources: dict[str, str] = {}
    for each in given:
        name, equals, dataset = each.partition("=")
        name = name.strip()
        if not equals or not name or not dataset.strip():
            raise UsageError(f"--source {each!r} names no dataset", next_step="--source orders=main.raw.orders")
        if name in sources:
            raise UsageError(f"--source names {name!r} twice", next_step="keep one of them")
        sources[name] = dataset.strip()
    return sources
