"""`lakeward build`: run applied pipelines."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer
from rich.console import RenderableType

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "build")(build)


def build(
    session: Session,
    names: Annotated[list[str] | None, typer.Argument(metavar="[PIPELINE]...", help="Which; none: all.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Run also those that are up to date.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Run applied pipelines that have something to do.

    Each runs after those that write what it reads; its outputs become visible together. A pipeline is up to date, and
    left alone, if since its last build its definition did not change and nothing was written to its sources, nor to its
    outputs by hand. That a query depends on the time or on chance (`now()`, `random()`) is not seen; `--full` runs it.
    """
    if dry_run:
        with session.workspace() as workspace:
            pending = workspace.pipelines.pending(names or None, full=full)
        actions = [
            f"{output.strategy} {output.dataset} from {', '.join(pipeline.sources.values())} "
            f"(pipeline {pipeline.name}): {reason}"
            for pipeline, reason in pending
            for output in pipeline.spec.outputs
        ]
        session.show_actions(actions, lakeward("build", *(names or []), *(["--full"] if full else [])))
        return

    def told(progress: Any) -> None:
        session.progress(f"building {progress.dataset}", progress.rows)

    started = time.monotonic()
    with session.workspace(make=True) as workspace:
        results = workspace.build(*(names or []), full=full, progress=told)
    seconds = time.monotonic() - started
    rows = [
        (result.pipeline, each.dataset, each.verb, f"{each.rows_in:,}", f"{each.row_count:,}", each.version)
        for result in results
        for each in result.transactions
    ]
    document = {"seconds": round(seconds, 3), "builds": [result.to_json() for result in results]}
    columns = ("pipeline", "dataset", "mode", "written", "rows now", "version")
    lines: list[RenderableType] = [f"pipeline {result.pipeline}: up to date" for result in results if result.up_to_date]
    if rows:
        lines += [table(columns, rows, ("written", "rows now", "version")), f"built in {seconds:.1f} s"]
    session.show(document, lines, [lakeward("dataset", "preview", rows[-1][1])] if rows else [])
