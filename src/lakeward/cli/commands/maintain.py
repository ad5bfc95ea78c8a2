"""`lakeward maintain`: rewrites files that are slow to read, expires old versions, removes what nothing needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.durations import seconds_of
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session

if TYPE_CHECKING:
    from lakeward.storage.leftovers import Rewriting
    from lakeward.storage.replication import Lag

DatasetsArgument = Annotated[
    list[str] | None,
    typer.Argument(metavar="DATASET…", show_default=False, help="Which; none: all, what was dropped, scratch."),
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
    """Rewrite worn files, expire versions, remove what is left over.

    Data files of Iceberg tables that are small, or have many deleted rows, are rewritten, as a version with the same
    rows. Versions beyond the policy expire; snapshots, rows and files that no readable version needs are removed. Old
    findings of comparisons are forgotten, but none of a difference that still stands.

    What was dropped and can't come back any more is removed for good: rows, the table's entry in the catalog, and the
    files that the table names.

    Recovery comes first, and mirrors get what they have missed. Each thing is removed by itself, never by a prefix,
    and nothing outside a dataset's own directory. Safe at any time, also in several processes at once, while others
    read and write.
    """
    seconds = seconds_of(older_than, "--older-than")
    with session.workspace() as workspace:
        report = workspace.maintain(
            *(datasets or ()), older_than=seconds, dry_run=dry_run, progress=lambda what, _: session.progress(what, 0)
        )
    for failure in report.failures:
        session.say(f"{failure.dataset}: not maintained to the end: {failure.error}")
    lines = [f"{each.dataset} version {each.version}: {each.outcome}" for each in report.recovered]
    lines += [_mirrored(each, dry_run) for each in report.mirrored]
    lines += [_compacted(each) for each in report.compacted]
    if dry_run:
        lines += [f"{action}, of {each.dataset}" for each in report.compacted for action in each.actions]
        lines += [
            f"{each.kind} {each.what}" + (f" of {each.dataset}" if each.dataset else "") for each in report.removed
        ]
    lines += [f"{'would be purged' if dry_run else 'purged'}: {each}" for each in report.purged]
    lines += report.notes
    done = "would be removed" if dry_run else "removed"
    lines += [f"{done}: {_counted(kind, count)}{_sized(size)}" for kind, (count, size) in report.totals().items()]
    again = lakeward("maintain", *(datasets or ()), *(() if older_than == "1h" else ("--older-than", older_than)))
    pending = dry_run and (report.mirrored or report.compacted or report.removed or report.purged)
    steps = [again] if pending or report.failures else []
    session.show(report.to_json(), lines or ["nothing to do"], steps)
    if report.failures:
        raise typer.Exit(1)


def _mirrored(lag: Lag, dry_run: bool) -> str:
    """Say in a line what a mirror has missed."""
    done = "would be brought" if dry_run else "brought"
    return f"{lag.dataset}: {_counted('version', lag.versions)} {done} to its mirror, the {lag.arm} arm"


def _compacted(done: Rewriting) -> str:
    """Say in a line what was rewritten, or would be."""
    dropped = f", {_counted('delete file', done.delete_files)} dropped" if done.delete_files else ""
    before = f"{_counted('data file', done.files)}{_sized(done.bytes)}"
    if done.version is None:
        return f"would be compacted: {done.dataset}: {before}, to {done.files_after:,}{dropped}"
    after = f"{done.files_after:,}{_sized(done.bytes_after or 0)}"
    return f"{done.dataset} version {done.version}: compacted {before}, to {after}{dropped}"


def _counted(kind: str, count: int) -> str:
    plural = kind if count == 1 or kind in ("rows", "scratch") else f"{kind}s"
    return f"{count:,} {plural}"


def _sized(size: int) -> str:
    return f", {size / 1e6:,.1f} MB" if size else ""
