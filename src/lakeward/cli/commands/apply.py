"""`lakeward apply`: store the project's pipelines, so that `build` can run them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.plan import ProjectOption, project_option
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session

if TYPE_CHECKING:
    from lakeward.pipelines.plan import PipelinePlan

_VERBS = {"added": "store", "changed": "replace", "removed": "remove"}


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "apply")(apply)


def apply(session: Session, project: ProjectOption = Path("."), dry_run: DryRunOption = False) -> None:
    """Store the project's pipelines. Nothing is built, and datasets stay as they are."""
    session.project = project
    if dry_run:
        with session.workspace() as workspace:
            made = workspace.plan(project)
        actions = [
            f"{_VERBS[pipeline.change]} pipeline {pipeline.name} ({pipeline.reason})"
            for pipeline in made.pipelines
            if pipeline.change in _VERBS
        ]
        session.show_actions(actions, lakeward("apply", *project_option(project)))
        return
    with session.workspace(make=True) as workspace:
        made = workspace.apply(project).with_arms(workspace.tree.arm_of)
    changed = [pipeline for pipeline in made.pipelines if pipeline.change in _VERBS]
    building = any(pipeline.change != "removed" for pipeline in changed)
    lines = [*made.lines(), f"applied: {_summary(made.pipelines)}"]
    if not changed:
        lines = ["nothing to apply: the project is as it was applied"]
    session.show(
        {**made.to_json(), "pending": False, "changed": len(changed)}, lines, ["lakeward build"] if building else []
    )


def _summary(pipelines: Sequence[PipelinePlan]) -> str:
    """Return how many pipelines were added, changed, removed and unchanged, without what is none."""
    counts = Counter(pipeline.change for pipeline in pipelines)
    return ", ".join(f"{counts[change]} {change}" for change in (*_VERBS, "unchanged") if counts[change])
