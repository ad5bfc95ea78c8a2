"""`lakeward source unfollow`: give up following, and what the source keeps for it."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.columns import parse_names
from lakeward.cli.command import command
from lakeward.cli.commands.source_add import SourceArgument
from lakeward.cli.confirm import confirm
from lakeward.cli.session import Session

UnfollowedTableOption = Annotated[
    list[str] | None,
    typer.Option("--table", metavar="TABLE", help="A table to follow no more; repeat it. None: all of them."),
]
AbandonOption = Annotated[
    bool, typer.Option("--abandon", help="Forget it here although the source does not answer, and keeps its log.")
]


def register(group: typer.Typer) -> None:
    """Add the command."""
    command(group, "unfollow")(unfollow)


def unfollow(
    session: Session,
    name: SourceArgument,
    table: UnfollowedTableOption = None,
    abandon: AbandonOption = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask for the source's name.")] = False,
) -> None:
    """Follow a source no more, or some of its tables.

    The source drops what it keeps for it. Datasets stay as they are.

    Changes that were not read are lost to them; following again begins with a new copy.
    """
    if not yes:
        confirm(name)
    with session.workspace() as workspace:
        left = workspace.sources.unfollow(name, parse_names(table or []), abandon=abandon)
    lines = [
        f"source {name} is followed no more" if not table else f"{', '.join(table)} of {name} are followed no more"
    ]
    if left is not None:
        lines.append(f"warning: the source keeps its log for lakeward_{left}; drop that there, else its disk fills up")
    session.show({"unfollowed": name, "tables": table, "left": left}, lines)
