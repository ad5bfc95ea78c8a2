"""`lakeward job log`, and how commands wait for a job."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.job_list import JobArgument, next_commands, told
from lakeward.cli.session import OutputFormat, Session, heavy
from lakeward.clock import SystemClock

if TYPE_CHECKING:
    from lakeward.jobs.job import Job, LogLine
    from lakeward.jobs.queue import Jobs

LOOK_SECONDS = 0.3
"""How often a job is looked at that somebody waits for."""


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "log")(log)


def log(
    session: Session,
    job: JobArgument,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the job has ended.")] = False,
) -> None:
    """Show what a job has told.

    With `--follow` also what it tells from now on, and how far it is; the exit code is then that of the job's error.
    """
    with session.workspace() as workspace:
        queue: Jobs = heavy("lakeward.jobs.queue").Jobs(workspace)
        queue.get(job)
        if not follow:
            lines = all_lines(queue, job)
            session.show({"job": job, "log": [each.to_json() for each in lines]}, [text_of(each) for each in lines])
            return
        found = wait_for(session, queue, job)
        show_ended(session, queue, found)


def wait_for(session: Session, queue: Jobs, job_id: int, sleep: Callable[[float], None] | None = None) -> Job:
    """Print what a job tells until it has ended, and return it."""
    pause, after = sleep or SystemClock().sleep, 0
    while True:
        # Before its lines, so that none of them is missed when it has ended.
        job = queue.get(job_id)
        for line in queue.log(job_id, after=after):
            session.say(text_of(line))
            after = line.id
        if job.ended:
            return job
        for what, each in job.progress.items():
            session.progress.beside(what, what, each["done"], each["total"], each["unit"])
        pause(LOOK_SECONDS)


def show_ended(session: Session, queue: Jobs, job: Job) -> None:
    """Show a job that has ended, and leave with its exit code."""
    lines = all_lines(queue, job.id) if session.output is OutputFormat.json else []
    session.show({**job.to_json(), "log": [each.to_json() for each in lines]}, told(job), next_commands(job))
    if job.status != "succeeded":
        raise typer.Exit(int((job.error or {}).get("exit_code", 1)))


def all_lines(queue: Jobs, job_id: int) -> list[LogLine]:
    """Return a job's whole log."""
    lines: list[LogLine] = []
    while page := queue.log(job_id, after=lines[-1].id if lines else 0):
        lines += page
    return lines


def text_of(line: LogLine) -> str:
    """Return a line of a log as text."""
    level = "" if line.level == "info" else f"{line.level}: "
    return f"{line.at:%Y-%m-%d %H:%M:%S} {level}{line.line}"
