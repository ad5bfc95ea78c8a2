"""`lakeward job cancel` and `lakeward job retry`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.job_list import JobArgument, next_commands, told
from lakeward.cli.session import Session, heavy

if TYPE_CHECKING:
    from lakeward.jobs.job import Job


def register(group: typer.Typer) -> None:
    """Add the commands."""
    command(group, "cancel")(cancel)
    command(group, "retry")(retry)


def cancel(session: Session, job: JobArgument) -> None:
    """Cancel a job: one that waits never runs, one that runs is asked to end.

    What it has not committed is removed. A job that has ended stays as it is.
    """
    with session.workspace() as workspace:
        _show(session, heavy("lakeward.jobs.queue").Jobs(workspace).cancel(job))


def retry(session: Session, job: JobArgument) -> None:
    """Queue a job again that failed or was cancelled; begin one now that waits for its next try."""
    with session.workspace() as workspace:
        _show(session, heavy("lakeward.jobs.queue").Jobs(workspace).retry(job))


def _show(session: Session, found: Job) -> None:
    session.show(found.to_json(), told(found), next_commands(found))
