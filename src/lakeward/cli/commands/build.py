"""`lakeward build`: run applied pipelines."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.build_progress import build_progress
from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands import build_watch
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted, table
from lakeward.errors import LakewardError, UsageError

if TYPE_CHECKING:
    from lakeward.pipelines.schedule import Builds
    from lakeward.pipelines.spec import Pipeline
    from lakeward.wiring.workspace import Workspace


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "build")(build)


def build(
    session: Session,
    names: Annotated[list[str] | None, typer.Argument(metavar="[PIPELINE]...", help="Which; none: all.")] = None,
    select: Annotated[
        list[str] | None,
        typer.Option(
            "--select",
            metavar="WHICH",
            help="+NAME: with all upstream; NAME+: with all downstream; tag:TAG. Repeat it for more.",
        ),
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Compute everything, also where nothing or only a part is new.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say which versions of which source would be read, and why.")
    ] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on: build again whenever a source has a new version. Ctrl-C ends it.")
    ] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.1, help="With --watch: between two looks.")
    ] = 2.0,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", metavar="N", min=1, help="How many at a time. Else the setting `build.jobs`."),
    ] = None,
    fail_fast: Annotated[bool, typer.Option("--fail-fast", help="When one has failed, start no other one.")] = False,
    dry_run: DryRunOption = False,
) -> None:
    """Run applied pipelines that have something to do.

    Each runs after those that write what it reads; its outputs become visible together. A pipeline is up to date, and
    left alone, if since its last build its definition did not change and nothing was written to its sources, nor to its
    outputs by hand. That a query depends on the time or on chance (`now()`, `random()`) is not seen; `--full` runs it.

    When one fails, those that read what it writes are skipped, and all others are built. The exit code is that of the
    first failure.
    """
    again = _again(names, select, full)
    if watch:
        if full or explain or dry_run:
            raise UsageError("--watch goes with neither --full, --explain nor --dry-run", next_step="leave one out")
        build_watch.watch(session, names, select, every, jobs, fail_fast)
        return
    if explain:
        _explain(session, names, select, full, again)
        return
    if dry_run:
        with session.workspace() as workspace:
            pending = workspace.pipelines.pending(names or None, select=select or (), full=full)
            warnings, remedies = unapplied(session, workspace)
        actions = [
            f"{output.strategy} {output.dataset} from {', '.join(pipeline.sources.values())} "
            f"(pipeline {pipeline.name}{_scheduled(pipeline)}): {reason}"
            for pipeline, reason in pending
            for output in pipeline.spec.outputs
        ]
        session.show_actions(actions, again, warnings, remedies)
        return

    started = time.monotonic()
    with session.workspace(make=True) as workspace:
        builds = workspace.pipelines.build_all(
            names or None,
            select=select or (),
            full=full,
            jobs=jobs,
            fail_fast=fail_fast,
            progress=build_progress(session),
        )
        seconds = time.monotonic() - started
        warnings, remedies = unapplied(session, workspace)
    _show(session, builds, seconds, warnings, remedies)


def _scheduled(pipeline: Pipeline) -> str:
    return f", schedule {pipeline.spec.schedule}" if pipeline.spec.schedule is not None else ""


def _show(session: Session, builds: Builds, seconds: float, warnings: list[str], remedies: list[str]) -> None:
    """Print what was built, and raise the error of what was not."""
    results = builds.results.values()
    rows = [
        (result.pipeline, each.dataset, each.verb, f"{each.rows_in:,}", f"{each.row_count:,}", each.version)
        for result in results
        for each in result.transactions
    ]
    document = {"seconds": round(seconds, 3), "builds": [result.to_json() for result in results], "warnings": warnings}
    columns = ("pipeline", "dataset", "mode", "rows in", "rows now", "version")
    lines: list[RenderableType] = [f"pipeline {result.pipeline}: up to date" for result in results if result.up_to_date]
    if rows:
        lines += [f"warning: {warning}" for result in results for warning in result.warnings]
        lines += [table(columns, rows, ("rows in", "rows now", "version")), f"built in {seconds:.1f} s"]
    lines += [f"warning: {warning}" for warning in warnings]
    failure = builds.failure
    if failure is not None:
        for line in lines:
            session.say(line)
        raise failure
    session.show(document, lines, remedies + ([lakeward("dataset", "preview", rows[-1][1])] if rows else []))


def _again(names: list[str] | None, select: list[str] | None, full: bool) -> str:
    chosen = [word for each in select or [] for word in ("--select", each)]
    return lakeward("build", *(names or []), *chosen, *(["--full"] if full else []))


def _explain(session: Session, names: list[str] | None, select: list[str] | None, full: bool, again: str) -> None:
    with session.workspace() as workspace:
        found = workspace.pipelines.explain(names or None, select=select or (), full=full)
    rows = [
        (
            output.dataset,
            "delta" if windows.delta else "all rows",
            source.dataset,
            f"({source.window.low}, {source.window.high}]" if source.window.low else f"up to {source.window.high}",
            source.reason,
        )
        for _, output, windows in found
        for source in windows.sources.values()
    ]
    document = {
        "outputs": [
            {"pipeline": pipeline.name, "dataset": output.dataset, "strategy": output.strategy, **windows.to_json()}
            for pipeline, output, windows in found
        ]
    }
    lines: list[RenderableType] = [table(("output", "computes", "source", "versions", "why"), rows)]
    session.show(document, lines, [again])


def unapplied(session: Session, workspace: Workspace) -> tuple[list[str], list[str]]:
    """Return what to say, and to do, where the project that we are in is not as it was applied.

    `build` runs what was applied, so that neither a new file nor one that can't be read stops it.
    """
    file = session.settings_file
    # A settings file without pipelines beside it is no project whose pipelines were all removed.
    if file is None or not (file.parent / "pipelines").is_dir():
        return [], []
    step = [lakeward("plan")]
    try:
        made = workspace.plan(file.parent)
    except (LakewardError, OSError) as error:
        # The first line has file and place; `plan` shows the rest.
        reason = (error.message if isinstance(error, LakewardError) else str(error)).partition("\n")[0]
        return [f"the project on disk can't be read, and what was applied before is built: {reason}"], step
    differing = sum(pipeline.pending for pipeline in made.pipelines)
    if not differing:
        return [], []
    verb = "differs" if differing == 1 else "differ"
    return [f"{counted(differing, 'pipeline')} on disk {verb} from what is applied"], step
