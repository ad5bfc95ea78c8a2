"""`lakeward build`: run applied pipelines."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.session import Session
from lakeward.cli.text import table


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "build")(build)


def build(
    session: Session,
    names: Annotated[list[str] | None, typer.Argument(metavar="[PIPELINE]...", help="Which; none: all.")] = None,
    full: Annotated[bool, typer.Option("--full", help="Read every source from its beginning.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Run applied pipelines.

    Each runs after those that write what it reads; its outputs become visible together.
    """
    if dry_run:
        with session.workspace() as workspace:
            pipelines = workspace.pipelines.chosen(names or None)
        actions = [
            f"{output.strategy} {output.dataset} from {', '.join(pipeline.sources.values())} (pipeline {pipeline.name})"
            for pipeline in pipelines
            for output in pipeline.spec.outputs
        ]
        session.show_actions(actions, " ".join(["lakeward build", *(names or [])]))
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
    document = {
        "seconds": round(seconds, 3),
        "builds": [
            {
                "build_id": str(result.build_id),
                "pipeline": result.pipeline,
                "transactions": [each.to_json() for each in result.transactions],
            }
            for result in results
        ],
    }
    columns = ("pipeline", "dataset", "mode", "rows in", "rows now", "version")
    steps = [f"lakeward dataset preview {rows[-1][1]}"] if rows else []
    session.show(
        document, [table(columns, rows, ("rows in", "rows now", "version")), f"built in {seconds:.1f} s"], steps
    )
