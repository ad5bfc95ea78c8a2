"""`lakeward flags`: the mode of the datasets that writers make, and the arm that readers prefer."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import DryRunOption, command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table

if TYPE_CHECKING:
    from lakeward.wiring.flags import FlagState


class Kind(StrEnum):
    """What a flag is set for."""

    writer = "writer"
    reader = "reader"


KindArgument = Annotated[Kind, typer.Argument(metavar="writer|reader", show_default=False, help="What it is for.")]
NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", show_default=False, help="Of the writer or reader, as `flags list` shows it.")
]
ValueArgument = Annotated[
    str,
    typer.Argument(
        metavar="VALUE",
        show_default=False,
        help="Of a writer: pg, dual, iceberg_dual, iceberg_native. Of a reader: primary, postgres, iceberg, shadow.",
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option("--dataset", metavar="DATASET", show_default=False, help="For this dataset only; none: for all."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Flags of writers and readers.", no_args_is_help=True)
    for name, run in (("list", show), ("set", put), ("clear", clear)):
        command(group, name)(run)
    app.add_typer(group, name="flags")


def show(session: Session, dataset: DatasetOption = None) -> None:
    """Show every writer and reader, and what is in force for it.

    A writer's value is the mode of the datasets that it makes; its ceiling is the highest mode that it may write to.
    For one dataset it is that dataset's mode. A reader's value is the arm that it prefers.
    """
    with session.workspace() as workspace:
        states = workspace.flags.list(dataset)
    columns = ("", "name", "value", "from", "ceiling", "what it is")
    rows = [(each.kind, each.name, each.value, _source(each), each.ceiling or "", each.about) for each in states]
    session.show({"flags": [each.to_json() for each in states]}, [table(columns, rows)])


def put(
    session: Session,
    kind: KindArgument,
    name: NameArgument,
    value: ValueArgument,
    dataset: DatasetOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Set the mode of a writer, or what a reader prefers.

    Every process follows within seconds. A writer's mode is that of the datasets that it makes from now on. For one
    dataset it is a change of its route, and refused if an arm of the mode does not hold its newest version.
    """
    given = {kind.value: name, "mode" if kind is Kind.writer else "prefer": value, "dataset": dataset}
    again = lakeward("flags", "set", kind.value, name, value, *(("--dataset", dataset) if dataset else ()))
    with session.workspace() as workspace:
        if dry_run:
            session.show_actions(workspace.flags.explain_set(**given), again)
            return
        changed = workspace.flags.set(**given)
    _told(session, changed, f"{_what(kind, name, dataset)} is {value}")


def clear(
    session: Session,
    kind: KindArgument,
    name: NameArgument,
    dataset: DatasetOption = None,
    dry_run: DryRunOption = False,
) -> None:
    """Take a flag back.

    The one for all datasets, or the default, is in force then.
    """
    given = {kind.value: name, "dataset": dataset}
    again = lakeward("flags", "clear", kind.value, name, *(("--dataset", dataset) if dataset else ()))
    with session.workspace() as workspace:
        if dry_run:
            session.show_actions(workspace.flags.explain_clear(**given), again)
            return
        changed = workspace.flags.clear(**given)
    _told(session, changed, f"{_what(kind, name, dataset)} has its flag no more")


def _told(session: Session, changed: bool, what: str) -> None:
    line = what if changed else "nothing to do: it was so before"
    session.show({"changed": changed}, [line], [lakeward("flags", "list")] if changed else [])


def _what(kind: Kind, name: str, dataset: str | None) -> str:
    return f"{kind.value} {name}" + (f" of {dataset}" if dataset else "")


def _source(state: FlagState) -> str:
    if state.source == "dataset":
        return f"{'route of ' if state.kind == 'writer' else ''}{state.dataset}"
    return state.source
