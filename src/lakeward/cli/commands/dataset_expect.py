"""`lakeward dataset expect`: what a dataset's rows have to be, whoever writes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import counted
from lakeward.errors import UsageError

FileArgument = Annotated[
    Path | None, typer.Argument(metavar="[FILE]", help="A YAML file with the list.", show_default=False)
]
ShowOption = Annotated[bool, typer.Option("--show", help="Show what is declared. So does no FILE.")]
ClearOption = Annotated[bool, typer.Option("--clear", help="Expect nothing any more.")]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "expect")(expect)


def expect(
    session: Session,
    dataset: DatasetArgument,
    file: FileArgument = None,
    show: ShowOption = False,
    clear: ClearOption = False,
    dry_run: DryRunOption = False,
) -> None:
    """Declare what a dataset's rows have to be.

    FILE has a list like `expectations` of a pipeline's output, under that key or alone; it takes the place of what was
    declared before. Every later version is judged before anybody sees it: imports, syncs, edits, writes from Python and
    pipelines, which judge what they expect of their outputs besides. A write that fails changes nothing, and ends with
    exit code 5; `on_fail: warn` is told and kept.
    """
    if sum([file is not None, show, clear]) > 1:
        raise UsageError("FILE, --show and --clear each say something else", next_step="give one of them")
    with session.workspace() as workspace:
        handle = workspace.dataset(dataset)
        if file is None and not clear:
            _show(session, handle.name, handle.expected())
            return
        made = handle.expect(file if file is not None else [], dry_run)
    warnings = [f"warning: {each}" for each in made.warnings]
    if dry_run:
        actions = [f"expect of {handle.name}: {_line(each)}" for each in made.expectations]
        actions = actions or [f"expect nothing of {handle.name} any more"]
        session.show_actions(actions if made.changed else [], "the same command without --dry-run", made.warnings)
        return
    judged = f"{handle.name}: {counted(len(made.expectations), 'expectation')}, judged in every later version"
    session.show(
        {"dataset": handle.name, **vars(made), "warnings": list(made.warnings)},
        [judged if made.expectations else _nothing(handle.name), *warnings],
        [lakeward("dataset", "expect", handle.name, "--show")],
    )


def _show(session: Session, name: str, declared: list[Any]) -> None:
    lines = [f"- {_line(each)}" for each in declared] or [_nothing(name)]
    session.show({"dataset": name, "expectations": declared}, lines, [lakeward("dataset", "expectations", name)])


def _nothing(name: str) -> str:
    return f"nothing is expected of {name}, but for what pipelines expect of their outputs"


def _line(expectation: Any) -> str:
    """Return one item as YAML takes it on one line."""
    return expectation if isinstance(expectation, str) else json.dumps(expectation, ensure_ascii=False)
