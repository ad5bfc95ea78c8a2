"""`lakeward token`: what people and programs show to a server to say who they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lakeward.access.roles import Role
from lakeward.cli.command import command
from lakeward.cli.next_steps import lakeward
from lakeward.cli.session import Session
from lakeward.cli.text import table
from lakeward.errors import UnknownObject

if TYPE_CHECKING:
    from lakeward.control.tokens import TokenRecord

UserOption = Annotated[str, typer.Option("--user", metavar="NAME", show_default=False, help="Whose it is.")]
PLACE = "CATALOG[.SCHEMA[.DATASET]]"


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(help="Tokens, by which a server knows who asks.", no_args_is_help=True)
    for name, run in (("add", add), ("list", show), ("revoke", revoke)):
        command(group, name)(run)
    app.add_typer(group, name="token")


def add(
    session: Session,
    user: UserOption,
    role: Annotated[
        str | None, typer.Option("--role", metavar="ROLE", help="Also grant: viewer, builder, operator or admin.")
    ] = None,
    on: Annotated[
        str | None, typer.Option("--on", metavar=PLACE, help="Where that role is granted; none: everywhere.")
    ] = None,
    at_most: Annotated[
        str | None, typer.Option("--at-most", metavar="ROLE", help="The highest role that it lets its user use.")
    ] = None,
    within: Annotated[
        str | None, typer.Option("--within", metavar=PLACE, help="The only place that it lets its user act in.")
    ] = None,
    days: Annotated[
        float | None, typer.Option("--days", min=0, metavar="DAYS", help="Until then it counts; none: until revoked.")
    ] = None,
    about: Annotated[str, typer.Option("--about", metavar="TEXT", help="What it is for.")] = "",
) -> None:
    """Make a token, and print it: once, since only its hash is kept.

    It counts for what its user may do. Whoever is to be the first admin gets one on the machine, where the database's
    credentials are: `lakeward token add --user NAME --role admin`.
    """
    granted, ceiling = role_of(role), role_of(at_most)
    with session.workspace() as workspace:
        made, text = workspace.access.add_token(
            user, about=about, role=granted, on=on, at_most=ceiling, within=within, days=days
        )
    session.show({**made.to_json(), "token": text}, [text], [lakeward("token", "revoke", made.name)])


def show(
    session: Session,
    user: Annotated[str | None, typer.Option("--user", metavar="NAME", help="Of this user only.")] = None,
) -> None:
    """List tokens: whose they are, what they are limited to, and when they were used last."""
    with session.workspace() as workspace:
        found = workspace.access.tokens(user)
    columns = ("name", "user", "at most", "within", "made", "used", "", "about")
    rows = [_row(each) for each in found]
    session.show({"tokens": [each.to_json() for each in found]}, [table(columns, rows)] if rows else ["no tokens"])


def revoke(
    session: Session,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Of the token: the eight letters behind `lw_`.")],
) -> None:
    """Let a token count no more, at once, nor the logins that were made with it."""
    with session.workspace() as workspace:
        done = workspace.access.revoke(name)
    session.show({"token": name, "revoked": done}, [f"token {name} counts no more" if done else "it did not, already"])


def role_of(name: str | None) -> Role | None:
    """Return a role by its name.

    Raises:
        UnknownObject: there is none.
    """
    if name is None:
        return None
    if name.upper() not in Role.__members__:
        raise UnknownObject.among("role", name, [str(each) for each in Role], role=name)
    return Role[name.upper()]


def _row(token: TokenRecord) -> list[object]:
    ends = f"until {token.expires_at:%Y-%m-%d %H:%M}" if token.expires_at else ""
    used = f"{token.used_at:%Y-%m-%d %H:%M}" if token.used_at else "never"
    told = token.to_json()
    return [
        token.name,
        token.user,
        token.ceiling or "",
        told["within"] or "",
        f"{token.made_at:%Y-%m-%d %H:%M} by {token.made_by}",
        used,
        "revoked" if token.revoked_at else ends if token.counts else "over",
        token.about,
    ]
