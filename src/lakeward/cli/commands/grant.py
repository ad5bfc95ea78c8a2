"""`lakeward grant`: which role somebody has where."""

from __future__ import annotations

from typing import Annotated

import typer

from lakeward.cli.command import command
from lakeward.cli.commands.token import PLACE, role_of
from lakeward.cli.session import Session
from lakeward.cli.text import table

UserArgument = Annotated[str, typer.Argument(metavar="USER", show_default=False, help="Their name.")]
OnOption = Annotated[
    str | None, typer.Option("--on", metavar=PLACE, show_default=False, help="Where; none: in the whole workspace.")
]


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Grants: who may do what, and where.", no_args_is_help=True)
    for name, run in (("set", put), ("list", show), ("remove", remove)):
        command(group, name)(run)
    app.add_typer(group, name="grant")


def put(
    session: Session,
    user: UserArgument,
    role: Annotated[
        str, typer.Argument(metavar="ROLE", show_default=False, help="viewer, builder, operator or admin.")
    ],
    on: OnOption = None,
) -> None:
    """Give somebody a role, in place of the one that they have there. A role holds for all that is inside, too."""
    granted = role_of(role)
    assert granted is not None
    with session.workspace() as workspace:
        changed = workspace.access.set_grant(user, granted, on)
    where = on or "the whole workspace"
    said = f"{user} is {granted} in {where}{'' if changed else ' already'}"
    session.show({"user": user, "role": str(granted), "on": on, "changed": changed}, [said])


def show(
    session: Session,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Of this user only.")] = None,
) -> None:
    """List who has which role where."""
    with session.workspace() as workspace:
        found = workspace.access.grants(user)
    rows = [
        (each.user, each.role, each.where or "the whole workspace", f"{each.granted_at:%Y-%m-%d} by {each.granted_by}")
        for each in found
    ]
    lines = [table(("user", "role", "in", "since"), rows)] if rows else ["nobody has a role but the owner"]
    session.show({"grants": [each.to_json() for each in found]}, lines)


def remove(session: Session, user: UserArgument, on: OnOption = None) -> None:
    """Take the role away that somebody has at a place. The last admin of a workspace stays one."""
    with session.workspace() as workspace:
        removed = workspace.access.remove_grant(user, on)
    where = on or "the whole workspace"
    session.show(
        {"user": user, "on": on, "removed": removed},
        [f"{user} has no role any more in {where}" if removed else f"{user} has none in {where}"],
    )
