"""`lakeward flip canary`: reads both arms for a while, and lets the other one serve if all is well."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.durations import seconds_of
from lakeward.cli.flip_text import show_steps
from lakeward.cli.session import Session
from lakeward.errors import UsageError
from lakeward.migration.options import Limits


class Then(StrEnum):
    """What follows when all is well."""

    switch = "switch"
    nothing = "nothing"


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "canary")(canary)


def canary(
    session: Session,
    dataset: DatasetArgument,
    watched: Annotated[
        str | None,
        typer.Option("--for", metavar="DURATION", show_default=False, help="How long: 90s, 30m, 1h, 2d."),
    ] = None,
    max_mismatch: Annotated[
        int, typer.Option("--max-mismatch", metavar="N", min=0, help="So many comparisons may find a difference.")
    ] = 0,
    max_latency_ratio: Annotated[
        float | None,
        typer.Option(
            "--max-latency-ratio",
            metavar="RATIO",
            min=0.0,
            show_default=False,
            help="The new arm's median read may take so many times as long as the old one's. Else that is only told.",
        ),
    ] = None,
    min_reads: Annotated[
        int, typer.Option("--min-reads", metavar="N", min=1, help="So many reads have to be compared.")
    ] = 1,
    then: Annotated[Then, typer.Option("--then", help="What follows when all is well.")] = Then.switch,
    smoke: Annotated[bool, typer.Option("--smoke", help="Read both arms once, as `flip start` does.")] = False,
) -> None:
    """Read both arms for a while, then switch or stop.

    Readers of the dataset are set to ask both arms (the flag `shadow`), unless one does so already, and get the answer
    of the arm that serves. Their flags are put back afterwards. If the arms keep to the limits, the other one serves;
    if not, the old one does, and the reason is told. A difference ends the watch at once.

    Ctrl-C leaves the route as it is. The same command goes on with what was found before, and its time counts from
    when it was begun.
    """
    if smoke == (watched is not None):
        raise UsageError(
            "a canary needs a duration, or is the one-shot check",
            safe="nothing was changed",
            next_step="give either --for 30m or --smoke",
        )
    with session.workspace() as workspace:
        if watched is None:
            flip = workspace.flip(dataset, lambda stage, done, total: session.progress(stage, done, total, "reads"))
            steps = [flip.stage("canary")]
        else:
            limits = Limits(seconds_of(watched, "--for"), max_mismatch, max_latency_ratio, min_reads)
            flip = workspace.flip(dataset, lambda stage, done, total: session.progress(stage, done, total, "seconds"))
            steps = flip.canary(limits, promote=then is Then.switch)
        now = flip.status()
    show_steps(session, steps, now)
