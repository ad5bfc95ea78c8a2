"""`lakeward flip recheck`: are all mirrors still what they should be?"""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.durations import seconds_of
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table
from lakeward.errors import ParityMismatch

DatasetsArgument = Annotated[
    list[str] | None, typer.Argument(metavar="DATASET…", show_default=False, help="Which; none: all that are mirrored.")
]
OlderThanOption = Annotated[
    str, typer.Option(metavar="DURATION", help="Leave out those that were compared more recently: 12h, 7d.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "recheck")(recheck)


def recheck(session: Session, datasets: DatasetsArgument = None, older_than: OlderThanOption = "7d") -> None:
    """Compare all rows of the mirrored datasets anew.

    One dataset after the other, and a difference in one keeps no other from being looked at. What is found is kept, and
    a difference blocks `switch`. Meant for a scheduler. Exit code 4 if the arms of one differ, 1 if one could not be
    compared.
    """
    seconds = seconds_of(older_than, "--older-than")
    with session.workspace() as workspace:
        found = workspace.comparisons.recheck(
            *(datasets or ()), older_than=seconds, tell=lambda name: session.progress(name, 0)
        )
    rows = [(each.dataset, each.outcome, each.version, each.rows) for each in found]
    lines = [table(("dataset", "", "version", "rows"), rows, ("version", "rows"))] if rows else ["nothing is mirrored"]
    wrong = [each for each in found if each.error is not None]
    steps = [lakeward("verify", each.dataset) for each in wrong if each.outcome == "differs"]
    session.show(
        {"datasets": [each.to_json() for each in found]}, [*lines, *(str(each.error) for each in wrong)], steps
    )
    if wrong:
        raise typer.Exit(ParityMismatch.exit_code if steps else 1)
