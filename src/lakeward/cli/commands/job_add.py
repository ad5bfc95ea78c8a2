"""`lakeward job add`."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.job_list import next_commands, told
from lakeward.cli.commands.job_log import show_ended, wait_for
from lakeward.cli.session import Session, heavy
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.jobs.job import Job
    from lakeward.jobs.queue import Jobs


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "add")(add)


def add(
    session: Session,
    kind: Annotated[str, typer.Argument(metavar="KIND", show_default=False, help="As `lakeward job kinds` lists.")],
    options: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME=VALUE]...", show_default=False, help="Its options; repeat one for a list."),
    ] = None,
    at: Annotated[
        str | None,
        typer.Option("--at", metavar="TIME", show_default=False, help="Not before: 2026-12-24T06:00+01:00."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="TEXT", show_default=False, help="One with this key that waits is enough."),
    ] = None,
    wait: Annotated[bool, typer.Option("--wait", help="Show how far it is until it has ended.")] = False,
) -> None:
    """Queue a job for the workers.

    One that waits already with the same options is enough: then that one is shown, and none is added. With `--wait` the
    exit code is that of the job's error.
    """
    with session.workspace() as workspace:
        queue: Jobs = heavy("lakeward.jobs.queue").Jobs(workspace)
        kinds = heavy("lakeward.jobs.known_kinds")
        given = _given(options or (), kinds.kind_named(kind).options.model_fields)
        job: Job = queue.add(kind, given, run_at=_time(at), key=key)
        if wait:
            show_ended(session, queue, wait_for(session, queue, job.id))
            return
    session.show(job.to_json(), told(job), next_commands(job))


def _given(words: Sequence[str], fields: dict[str, Any]) -> dict[str, Any]:
    """Return options by name; of a list, all values that were given."""
    found: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(
                f"{word!r} is no option of the form NAME=VALUE",
                safe="nothing was queued",
                next_step="lakeward job kinds",
            )
        name = name.replace("-", "_")
        listed = name in fields and "tuple" in str(fields[name].annotation)
        found[name] = [*found.get(name, ()), value] if listed else value
    return found


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"--at {text!r} is no time", safe="nothing was queued", next_step="write 2026-12-24T06:00+01:00"
        ) from None
