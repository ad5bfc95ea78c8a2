"""`lakeward move apply` and `lakeward move undo`: many tables, one after the other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.move_names import AllOption, LimitOption, NamesArgument, check_names
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted
from lakeward.errors import UsageError

if TYPE_CHECKING:
    from lakeward.migration.moves.planning import PlannedMove
    from lakeward.migration.moves.sweep import Outcome

RETRY_FILE = Path("lakeward-moves-retry.toml")

_WORDS = {"done": "left as they are", "skipped": "without a table", "left": "left for later"}
"""Outcomes as people read them, where one word does not say it."""

PlanOption = Annotated[
    Path | None,
    typer.Option("--plan", metavar="FILE", show_default=False, help="A list as `move plan --file` writes it."),
]
RetryOption = Annotated[
    Path, typer.Option("--retry-file", metavar="FILE", help="Where those that failed are listed, for --plan.")
]


def register(group: typer.Typer) -> None:
    """Add the commands."""
    command(group, "apply")(apply)
    command(group, "undo")(undo)


def apply(
    session: Session,
    names: NamesArgument = None,
    all_: AllOption = False,
    plan: PlanOption = None,
    limit: LimitOption = None,
    retry_file: RetryOption = RETRY_FILE,
    dry_run: DryRunOption = False,
) -> None:
    """Move Iceberg tables to the names of their datasets.

    In the catalog, one after the other.

    Only names change: no file is touched. Readers go on, and find a table under its old or its new name; writers wait
    for the one that is being moved. One that fails is told with its reason and listed in the retry file, and the next
    one is moved. Repeating it does what is left, and first finishes a move that was cut short. The exit code is 6 if
    conflicts are all that failed, else 1 if anything did.
    """
    if plan is not None and (names or all_):
        raise UsageError(
            "--plan says what is moved, so no names and no --all beside it",
            safe="nothing was changed",
            next_step=lakeward("move", "apply", "--plan", plan),
        )
    listed = _read(plan) if plan is not None else None
    if listed is None:
        check_names(names, all_=all_)
    words = names or []
    again = _again("apply", [*words, *(["--all"] if all_ else [])], plan, limit)
    with session.workspace() as workspace:
        moves = workspace.moves
        if dry_run:
            found = moves.plan(*words, limit=limit) if listed is None else moves.plan_list(listed, limit=limit)
            warnings = [f"{each.dataset}: {each.reason}" for each in found.refused]
            session.show_actions([each.explain() for each in found.moves], again, warnings)
            return
        before = moves.counts()
        total = len(listed) if listed is not None else len(moves.choose(*words))
        run = moves.apply(*words, limit=limit) if listed is None else moves.apply_list(listed, limit=limit)
        outcomes = _follow(session, run, total)
        after = moves.counts()
    _show(session, outcomes, (before, after), again, retry_file)


def undo(session: Session, names: NamesArgument = None, all_: AllOption = False, dry_run: DryRunOption = False) -> None:
    """Take the newest move of each table back, one after the other.

    Refused where its old name is another table's meanwhile. Whatever was written since goes with the table. One that
    was never moved, or whose move was taken back, is left alone.
    """
    check_names(names, all_=all_)
    words = names or []
    again = _again("undo", words or ["--all"], None, None)
    with session.workspace() as workspace:
        moves = workspace.moves
        if dry_run:
            back, refused = moves.plan_undo(*words)
            warnings = [f"{each.dataset}: {each.reason}" for each in refused]
            session.show_actions([each.explain() for each in back], again, warnings)
            return
        before = moves.counts()
        outcomes = _follow(session, moves.undo(*words), len(moves.choose(*words)))
        after = moves.counts()
    _show(session, outcomes, (before, after), again, None)


def _read(plan: Path) -> list[PlannedMove]:
    found: list[PlannedMove] = heavy("lakeward.migration.moves.move_list").read_list(plan)
    return found


def _again(verb: str, words: Sequence[str], plan: Path | None, limit: int | None) -> str:
    listed = () if plan is None else ("--plan", plan)
    return lakeward("move", verb, *words, *listed, *(() if limit is None else ("--limit", limit)))


def _follow(session: Session, run: Iterator[Outcome], total: int) -> list[Outcome]:
    """Let it run, and show how far it is: on a terminal by a line that changes, elsewhere by a line for each."""
    outcomes: list[Outcome] = []
    session.progress("moving tables", 0, total, "datasets")
    for outcome in run:
        outcomes.append(outcome)
        if outcome.reason is not None and outcome.outcome == "failed":
            session.say(f"{outcome.dataset}: failed: {outcome.reason}")
        elif outcome.outcome == "moved" and outcome.relocation is not None and not session.progress.live:
            move = outcome.relocation
            session.say(f"{outcome.dataset}: moved from {move.source} to {move.target} ({outcome.way})")
        session.progress("moving tables", len(outcomes), total, "datasets")
    return outcomes


def _show(
    session: Session,
    outcomes: Sequence[Outcome],
    counted_in: tuple[Mapping[str, int], Mapping[str, int]],
    again: str,
    retry_file: Path | None,
) -> None:
    """Say what became of them all, how many tables are in each namespace before and after, and what to do next."""
    sweep = heavy("lakeward.migration.moves.sweep")
    counts = {kind: sum(each.outcome == kind for each in outcomes) for kind in sweep.OUTCOMES}
    told = [f"{counted(count, 'dataset')} {_WORDS.get(kind, kind)}" for kind, count in counts.items() if count]
    lines = [", ".join(told) or "nothing to move"]
    before, after = counted_in
    lines += [
        f"tables in {name}: {before.get(name, 0):,} before, {after.get(name, 0):,} now"
        for name in sorted({*before, *after})
        if before.get(name, 0) != after.get(name, 0)
    ]
    retried, trouble = _write_retries(outcomes, retry_file)
    lines += [trouble] if trouble is not None else []
    steps = [lakeward("move", "apply", "--plan", retried)] if retried is not None else []
    if counts["left"] or (counts["failed"] and retried is None):
        steps.append(again)
    if counts["moved"]:
        steps.append("lakeward move status")
    document = {
        **counts,
        "datasets": [each.to_json() for each in outcomes],
        "namespaces": {"before": dict(before), "after": dict(after)},
        "retry_file": str(retried) if retried is not None else None,
    }
    session.show(document, lines, steps)
    code = sweep.exit_code_of(outcomes)
    if code:
        raise typer.Exit(code)


def _write_retries(outcomes: Sequence[Outcome], file: Path | None) -> tuple[Path | None, str | None]:
    """List what failed. Return where; if it can't be written, why: what was moved has to be told all the same."""
    moves, reasons = heavy("lakeward.migration.moves.sweep").to_retry(outcomes)
    if file is None or not moves:
        return None, None
    try:
        heavy("lakeward.migration.moves.move_list").write_list(file, moves, reasons, replace=True)
    except UsageError as error:
        return None, error.message
    return file, None
