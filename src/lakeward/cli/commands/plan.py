"""`lakeward plan`: what `apply` would change."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session

ProjectOption = Annotated[
    Path, typer.Option("--project", metavar="DIR", help="The project folder, or one inside it.", show_default=False)
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "plan")(plan)


def project_option(project: Path) -> list[str]:
    """Return the option that names the project again; nothing for the current directory."""
    return [] if project == Path() else ["--project", str(project)]


def plan(session: Session, project: ProjectOption = Path(".")) -> None:
    """Show what `apply` would change, and what builds do then. Exit code 3 if something would change.

    A tree of added, changed, indirectly changed and removed pipelines; for each output whether it is rebuilt or gets a
    delta, and why. A line with ! says what is lost. Nothing is changed.
    """
    session.project = project
    with session.workspace() as workspace:
        made = workspace.plan(project).with_arms(workspace.tree.arm_of)
    lines = [*made.lines()] or ["the project has no pipelines"]
    if not made.pending:
        lines.append("nothing to apply")
    session.show(made.to_json(), lines, [lakeward("apply", *project_option(project))] if made.pending else [])
    if made.pending:
        raise typer.Exit(3)
