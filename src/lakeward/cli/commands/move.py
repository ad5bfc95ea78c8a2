"""`lakeward move`: brings Iceberg tables to the names of their datasets in the catalog, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.commands import move_apply, move_status
from lakeward.cli.commands.move_names import AllOption, LimitOption, NamesArgument, check_names
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session, heavy
from lakeward.cli.text import counted

if TYPE_CHECKING:
    from lakeward.migration.moves.planning import MovePlan

PENDING = 3

FileOption = Annotated[
    Path | None,
    typer.Option("--file", metavar="FILE", show_default=False, help="Write the list there, to edit it."),
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Names of Iceberg tables in the catalog.", no_args_is_help=True)
    command(group, "plan")(plan)
    move_apply.register(group)
    move_status.register(group)
    app.add_typer(group, name="move")


def plan(
    session: Session,
    names: NamesArgument = None,
    all_: AllOption = False,
    limit: LimitOption = None,
    file: FileOption = None,
) -> None:
    """Say which Iceberg tables are not at home.

    Those that are not where the names of their datasets say. Nothing is changed.

    A table belongs under the slugs of its catalog and schema, by that of its dataset. What would refuse to move is told
    with its reason. The list is a TOML file with a line for each table: cut lines out, or put a # in front of them, and
    give it to `move apply --plan`. A file that is there is left alone. The exit code is 3 if there is something to
    move.
    """
    check_names(names, all_=all_, needed=False)
    with session.workspace() as workspace:
        found = workspace.moves.plan(*(names or ()), limit=limit)
    if file is not None:
        heavy("lakeward.migration.moves.move_list").write_list(file, found.moves, found.refused)
    document = {**found.to_json(), "file": str(file) if file is not None else None}
    session.show(document, _lines(found), [_apply(names, limit, file)] if found.moves else [])
    if found.moves:
        raise typer.Exit(PENDING)


def _lines(found: MovePlan) -> list[str]:
    lines = [f"{number}. {move.explain()}" for number, move in enumerate(found.moves, start=1)]
    lines += [f"{each.dataset}: can't be moved now: {each.reason}" for each in found.refused]
    if not found.moves:
        lines.append("nothing to move")
    rest = [(found.at_home, "at home"), (len(found.skipped), "without a table"), (found.left, "left by the limit")]
    told = [f"{counted(count, 'dataset')} {what}" for count, what in rest if count]
    return [*lines, *([", ".join(told)] if told else [])]


def _apply(names: list[str] | None, limit: int | None, file: Path | None) -> str:
    if file is not None:
        return lakeward("move", "apply", "--plan", file)
    return lakeward("move", "apply", *(names or ["--all"]), *(() if limit is None else ("--limit", limit)))
