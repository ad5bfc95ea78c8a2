"""`lakeward job`: work that is queued for workers."""

from __future__ import annotations

import typer

from lakeward.cli.commands import job_add, job_change, job_list, job_log


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Work that is queued: added, looked at, cancelled.", no_args_is_help=True)
    for module in (job_list, job_add, job_change, job_log):
        module.register(group)
    app.add_typer(group, name="job")
