"""`lakeward job list`, `lakeward job show` and `lakeward job kinds`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import table

if TYPE_CHECKING:
    from lakeward.jobs.job import Job

JobArgument = Annotated[int, typer.Argument(metavar="JOB", show_default=False, help="Its number.")]


def register(group: typer.Typer) -> None:
    """Add the commands."""
    command(group, "list")(list_jobs)
    command(group, "show")(show)
    command(group, "kinds")(kinds)
    command(group, "schedules")(schedules)


def list_jobs(
    session: Session,
    status: Annotated[
        list[str] | None,
        typer.Option(metavar="STATUS", show_default=False, help="waiting, running, succeeded, failed, cancelled."),
    ] = None,
    kind: Annotated[str | None, typer.Option(metavar="KIND", show_default=False, help="Only of this kind.")] = None,
    before: Annotated[
        int | None, typer.Option(metavar="JOB", show_default=False, help="Only those older than this one.")
    ] = None,
    most: Annotated[int, typer.Option("--limit", min=1, metavar="N", help="So many at most.")] = 50,
) -> None:
    """List jobs, newest first."""
    with session.workspace() as workspace:
        queue = heavy("lakeward.jobs.queue").Jobs(workspace)
        found: list[Job] = queue.list(statuses=status or (), kind=kind, before=before, most=most)
    rows = [(each.id, each.kind, each.status, brief(each.options), each.added_by, each.added_at) for each in found]
    lines = [table(("job", "kind", "status", "options", "by", "added"), rows, ("job",))] if rows else ["no jobs"]
    more = [lakeward("job", "list", "--before", str(found[-1].id))] if len(found) == most else []
    session.show({"jobs": [each.to_json() for each in found]}, lines, more)


def show(session: Session, job: JobArgument) -> None:
    """Show a job: what was asked for, how far it is, what came of it."""
    with session.workspace() as workspace:
        found: Job = heavy("lakeward.jobs.queue").Jobs(workspace).get(job)
    session.show(found.to_json(), told(found), next_commands(found))


def kinds(session: Session) -> None:
    """List the kinds of jobs, and the options of each."""
    known = heavy("lakeward.jobs.known_kinds").job_kinds()
    documents, lines = [], []
    for name, kind in known.items():
        fields = kind.options.model_fields
        options = {key: {"help": field.description, "required": field.is_required()} for key, field in fields.items()}
        documents.append({"kind": name, "help": kind.about(), "queue": kind.queue, "options": options})
        lines.append(f"{name} (queue {kind.queue}): {kind.about()}")
        lines += [f"  {key}: {field.description}" for key, field in fields.items()]
    session.show({"kinds": documents}, lines)


def schedules(session: Session) -> None:
    """List what is queued by time or on change.

    Of pipelines that are applied and of the settings, with the next time of each in UTC.
    """
    with session.workspace() as workspace:
        module = heavy("lakeward.jobs.schedules")
        known = module.Schedules(heavy("lakeward.jobs.queue").Jobs(workspace))
        found = list(module.upcoming(known, datetime.now(UTC)))
    rows = [(each.name, each.text, each.kind, at or "when something changes") for each, at in found]
    lines = [table(("of", "schedule", "job", "next"), rows)] if rows else ["nothing is scheduled"]
    session.show({"schedules": [{**each.to_json(), "next": at} for each, at in found]}, lines)


def told(job: Job) -> list[str]:
    """Return a job as lines of text."""
    lines = [f"job {job.id}: {job.kind} {brief(job.options)}".rstrip(), f"{job.status}, asked for by {job.added_by}"]
    times = (("added", job.added_at), ("not before", job.run_at), ("started", job.started_at), ("ended", job.ended_at))
    lines += [f"{what} {at}" for what, at in times if at is not None]
    if job.cancelling:
        lines.append("it was asked to end")
    if job.status == "running":
        lines.append(f"by {job.worker}" if job.worker else "it begins")
        lines += [f"{what}: {_of(each)}" for what, each in job.progress.items()]
    if job.error is not None and job.status != "succeeded":
        lines.append(f"error: {job.error['message']}")
    if job.result is not None:
        lines.append(json.dumps(job.result, ensure_ascii=False, indent=2))
    return lines


def next_commands(job: Job) -> list[str]:
    """Return what may be done next about a job."""
    number = str(job.id)
    if job.status in ("waiting", "running"):
        return [lakeward("job", "log", number, "--follow"), lakeward("job", "cancel", number)]
    retry = [lakeward("job", "retry", number)] if job.status != "succeeded" else []
    return [lakeward("job", "log", number), *retry]


def brief(options: Mapping[str, Any]) -> str:
    """Return the options that were given, in short."""
    given = {name: value for name, value in options.items() if value not in (None, [], False)}
    return " ".join(f"{name}={','.join(value) if isinstance(value, list) else value}" for name, value in given.items())


def _of(progress: Mapping[str, Any]) -> str:
    of = f" of {progress['total']:,}" if progress.get("total") else ""
    return f"{progress['done']:,}{of} {progress['unit']}"
