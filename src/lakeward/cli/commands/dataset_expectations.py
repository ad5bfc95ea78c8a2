"""`lakeward dataset expectations`: what was found in the versions of one dataset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import RenderableType

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import printable, table

if TYPE_CHECKING:
    from lakeward.control.expectation_results import ExpectationResult, JudgedVersion

_BECAME = {"committed": "committed", "aborted": "not committed", "open": "not decided yet"}

VersionOption = Annotated[
    int | None, typer.Option("--version", metavar="N", help="This version only, also one that was refused.")
]
VersionsOption = Annotated[int, typer.Option("--most", metavar="N", min=1, help="At most so many versions.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "expectations")(expectations)


def expectations(
    session: Session, dataset: DatasetArgument, version: VersionOption = None, most: VersionsOption = 5
) -> None:
    """Show what was expected of versions, and what was found.

    Newest first, those that were refused among them. Of an expectation that failed, some rows are shown by their key.
    """
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        found = handle.expectations(version, most)
    lines: list[RenderableType] = []
    for each in found:
        lines += [f"version {each.version}, {_BECAME[each.status]}", _table(each.results), *_samples(each.results)]
    if not found:
        lines = ["nothing was judged" if version is None else f"nothing was judged in version {version}"]
    steps = [lakeward("dataset", "history", handle.name)] if found else []
    session.show({"dataset": handle.name, "versions": [each.to_json() for each in found]}, lines, steps)


def summary(judged: JudgedVersion) -> str:
    """Return one line on what was found in a version."""
    count, wrong = len(judged.results), sum(not each.good for each in judged.results)
    what = f"{wrong} of {count} not as expected" if wrong else f"all {count} as expected"
    return f"{what} in version {judged.version} ({_BECAME[judged.status]})"


def _table(results: Sequence[ExpectationResult]) -> RenderableType:
    rows = [
        (each.kind, each.text, each.on_fail, each.outcome, each.rows_checked, each.rows_failed, each.observed)
        for each in results
    ]
    columns = ("kind", "expected", "on fail", "outcome", "rows", "failed", "value")
    return table(columns, rows, ("rows", "failed", "value"))


def _samples(results: Sequence[ExpectationResult]) -> list[RenderableType]:
    lines: list[RenderableType] = []
    for each in results:
        if each.good:
            continue
        lines.append(printable(f"{each.kind} ({each.text}): {each.message}"))
        for row in each.samples:
            values = {name: "null" if value is None else value for name, value in row.items()}
            lines.append(printable("    " + ", ".join(f"{name} {value}" for name, value in values.items())))
    return lines
