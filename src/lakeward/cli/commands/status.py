"""`lakeward status`: where every dataset stands."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.access.guard import may
from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted, table

if TYPE_CHECKING:
    from lakeward.migration.advising import Advice


COUNTED_DAYS = 7

TROUBLES = {
    "lakeward_read_fallbacks_total": "fallback reads",
    "lakeward_mirror_failures_total": "writes that failed on a mirror",
    "lakeward_mirror_missed_total": "writes whose mirror was behind",
    "lakeward_mirror_mismatches_total": "writes whose mirror differed",
    'lakeward_shadow_reads_total{outcome="mismatch"': "compared reads that differed",
    'lakeward_shadow_reads_total{outcome="failed"': "shadow reads not compared",
    "lakeward_flags_clamped_total": "clamped flags",
    "lakeward_writes_refused_total": "refused writes",
}
"""Counters that are told of where they are not zero: what their names begin with, and what they count."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "status")(status)


def status(
    session: Session,
    advise: Annotated[
        bool, typer.Option("--advise", help="Say which datasets gain from a flip, to which arm and why.")
    ] = False,
) -> None:
    """Show where every dataset stands.

    Version, rows, the arms that hold it, open transactions, and what other engines have moved. What did not go as it
    was to in the last seven days is counted, in all processes; --output json has every counter.

    With --advise, which datasets gain from a flip: by rules of thumb over their size, the writes of the last seven
    days, files and replaced rows, how it is read, and by reads of both arms where some were compared. It is told what
    was looked at; where nothing speaks for a flip, nothing is said.
    """
    if advise:
        _advise(session)
        return
    with session.workspace() as workspace:
        datasets = workspace.status()
        unfinished = workspace.recoverable()
        place = workspace.database.display_url
        counters = workspace.metrics(days=COUNTED_DAYS)
        # Sources are the workspace's: who has a role in a part of it sees none.
        followed = workspace.sources.followed() if may("source.read") else []
    diverged = [each.name for each in datasets if each.status == "diverged"]
    document = {
        "database": place,
        "datasets": [each.to_json() for each in datasets],
        "open_transactions": [each.to_json() for each in unfinished if each.status == "open"],
        "unpublished": [each.to_json() for each in unfinished if each.status != "open"],
        "diverged": diverged,
        "followed": [each.to_json() for each in followed],
        "counters": {"days": COUNTED_DAYS, "values": counters},
    }
    rows = [
        (each.name, each.version, f"{each.row_count:,}", each.arm, ", ".join(each.holders) or "none", each.status)
        for each in datasets
    ]
    columns = ("dataset", "version", "rows", "arm", "head is on", "status")
    lines: list[RenderableType] = [table(columns, rows, ("version", "rows")) if rows else "no datasets yet"]
    for left in unfinished:
        what = "open" if left.status == "open" else "committed, not yet published"
        held = "held" if left.held else "its owner is gone" if left.status == "open" else "to be published again"
        of = "the move of its table" if left.kind == "move" else f"version {left.version} on the {left.arm} arm"
        lines.append(f"{left.dataset}: {of}: {what} ({left.owner or held})")
    away = [each for each in datasets if not each.at_home]
    if away:
        lines.append(f"{counted(len(away), 'Iceberg table')} not where the dataset's name says")
    behind = [each.behind for each in datasets if each.behind is not None]
    for lag in behind:
        why = f": {lag.error}" if lag.error else ""
        missed = f"{lag.versions:,} versions, {lag.rows:,} rows"
        lines.append(f"{lag.dataset}: the {lag.arm} arm, its mirror, is behind by {missed}{why}")
    lines += [each.line for each in followed]
    if troubles := _troubles(counters):
        lines.append(f"in the last {COUNTED_DAYS} days: {', '.join(troubles)}")
    steps = ["lakeward dataset import NAME FILE"] if not datasets else []
    if any(not left.held for left in unfinished):
        steps.append("lakeward ledger recover")
    if behind:
        steps.append(lakeward("maintain", *(lag.dataset for lag in behind)))
    if away:
        steps.append("lakeward move plan")
    if any(each.warning is not None for each in followed):
        steps.append("lakeward source logs")
    for name in diverged:
        steps += [lakeward("ledger", way, name, "--dry-run") for way in ("adopt", "restore")]
    session.show(document, lines, steps)


def _troubles(counters: Mapping[str, int]) -> list[str]:
    """Say what did not go as it was to, and how often."""
    sums = {
        what: sum(value for name, value in counters.items() if name.startswith(begin))
        for begin, what in TROUBLES.items()
    }
    return [f"{what} {count:,}" for what, count in sums.items() if count]


def _advise(session: Session) -> None:
    with session.workspace() as workspace:
        found: list[Advice] = heavy("lakeward.wiring.advice").advices(workspace)
    lines = [
        line
        for each in found
        for line in (
            f"{each.dataset} → {each.to}: {each.reason}",
            f"    looked at: {', '.join(f'{name} {_shown(value)}' for name, value in each.facts.items())}",
            *(f"    not known: {what}" for what in each.not_known),
        )
    ]
    steps = [lakeward("flip", "start", each.dataset, "--to", each.to, "--dry-run") for each in found]
    session.show({"advice": [each.to_json() for each in found]}, lines or ["nothing speaks for a flip"], steps)


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return " and ".join(f"{part:.3g} on {name}" for name, part in value.items())
    return f"{value:,}" if isinstance(value, int) else str(value)
