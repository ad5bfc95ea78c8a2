"""`lakeward maintain`: expires old versions and removes what nothing needs any more."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION = re.compile(r"(\d+(?:\.\d+)?) ?([smhd]?)")

DatasetsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="DATASET…", show_default=False, help="Which; none: all, and the scratch directory."),
]
OlderThanOption = Annotated[
    str,
    typer.Option(
        metavar="DURATION",
        help="What is younger, or was needed so recently, stays: 90s, 30m, 1h, 2d. At least a lease.",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "maintain")(maintain)


def maintain(
    session: Session,
    datasets: DatasetsArgument = None,
    older_than: OlderThanOption = "1h",
    dry_run: DryRunOption = False,
) -> None:
    """Expire old versions, and remove what nothing needs.

    Versions beyond the policy expire; snapshots, rows and files that no readable version needs are removed.

    Recovery comes first. Each thing is removed by itself, never by a prefix, and nothing outside a dataset's own
    directory. Safe at any time, also in several processes at once, while others read and write.
    """
    seconds = _seconds(older_than)
    with session.workspace() as workspace:
        report = workspace.maintain(
            *(datasets or ()), older_than=seconds, dry_run=dry_run, progress=lambda what, _: session.progress(what, 0)
        )
    for failure in report.failures:
        session.say(f"{failure.dataset}: not tidied to the end: {failure.error}")
    lines = [f"{each.dataset} version {each.version}: {each.outcome}" for each in report.recovered]
    if dry_run:
        lines += [
            f"{each.kind} {each.what}" + (f" of {each.dataset}" if each.dataset else "") for each in report.removed
        ]
    done = "would be removed" if dry_run else "removed"
    lines += [f"{done}: {_counted(kind, count)}{_sized(size)}" for kind, (count, size) in report.totals().items()]
    again = lakeward("maintain", *(datasets or ()), *(() if older_than == "1h" else ("--older-than", older_than)))
    steps = [again] if (dry_run and report.removed) or report.failures else []
    session.show(report.to_json(), lines or ["nothing to remove"], steps)
    if report.failures:
        raise typer.Exit(1)


def _seconds(text: str) -> float:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise typer.BadParameter(f"{text!r} is not a duration; write 90s, 30m, 1h or 2d", param_hint="--older-than")
    return float(match[1]) * _UNITS[match[2]]


def _counted(kind: str, count: int) -> str:
    plural = kind if count == 1 or kind in ("rows", "scratch") else f"{kind}s"
    return f"{count:,} {plural}"


def _sized(size: int) -> str:
    return f", {size / 1e6:,.1f} MB" if size else ""
