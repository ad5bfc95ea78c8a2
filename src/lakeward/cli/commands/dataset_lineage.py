"""`lakeward dataset lineage`: which columns a dataset's columns are made from, or what is made from them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.dataset_name import DatasetArgument
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.errors import UnknownObject

if TYPE_CHECKING:
    from lakeward.pipelines.lineage import ColumnLineage


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "lineage")(lineage)


def lineage(
    session: Session,
    dataset: DatasetArgument,
    column: Annotated[
        list[str] | None, typer.Option("--column", metavar="COLUMN", help="Only this column; repeat it for more.")
    ] = None,
    down: Annotated[
        bool, typer.Option("--down/--up", help="What is made from them, or what they are made from. Default: --up.")
    ] = False,
) -> None:
    """Show which columns a dataset's are made from.

    A column is made from those whose values its expression takes. What only decides which rows there are (WHERE, the
    keys of a join, GROUP BY) does not count.
    """
    with session.workspace() as workspace:
        found = workspace.pipelines.lineage()
        record = workspace.tree.find(dataset)
        if record is None and not found.writes(dataset):
            record = workspace.tree.dataset(dataset)
        name = record.name if record is not None else dataset
        columns = found.columns(name)
        for each in column or []:
            if each not in columns:
                near = difflib.get_close_matches(each, columns, n=1)
                raise UnknownObject(
                    f"dataset {name} has no column {each!r}; there are {', '.join(columns)}",
                    next_step=f"did you mean {near[0]}?" if near else None,
                    dataset=name,
                )
        follow = found.down if down else found.up
        trees = [follow(name, each) for each in column or columns]
    direction = "down" if down else "up"
    lines = [name, *_branches(trees, "", set())]
    steps = []
    if not down and not found.writes(name):
        lines.append("no applied pipeline writes it")
        steps = [lakeward("dataset", "lineage", name, "--down")]
    document = {"dataset": name, "direction": direction, "columns": [tree.to_json() for tree in trees]}
    session.show(document, lines, steps)


def _branches(trees: list[ColumnLineage], indent: str, seen: set[tuple[str, str]]) -> Iterator[str]:
    """Yield the lines below a place; what was shown before, of a column that is reached twice, is not shown again."""
    for position, tree in enumerate(trees, start=1):
        last = position == len(trees)
        key = (tree.dataset, tree.column)
        again = key in seen and bool(tree.links) and not tree.hidden
        seen.add(key)
        name = str(tree) if indent else tree.column
        by = f", by pipeline {tree.pipeline}" if tree.pipeline is not None else ""
        note = f" ({tree.note})" if tree.note is not None else " (as above)" if again else ""
        yield f"{indent}{'└──' if last else '├──'} {name}{by}{note}"
        if not again:
            yield from _branches(list(tree.links), indent + ("    " if last else "│   "), seen)
