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
    """Show what `apply` would change. Exit code 3 if something would."""
    session.project = project
    with session.workspace() as workspace:
        made = workspace.plan(project)
    lines = [*made.lines()] or ["the project has no pipelines"]
    if not made.pending:
        lines.append("nothing to apply")
    session.show(made.to_json(), lines, [lakeward("apply", *project_option(project))] if made.pending else [])
    if made.pending:
        raise typer.Exit(3)
