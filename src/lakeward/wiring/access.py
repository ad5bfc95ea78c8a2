"""Who may do what in a workspace, as `Workspace.access` has it: tokens, grants, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from lakeward.access.guard import itself, require
from lakeward.access.principal import Principal
from lakeward.access.roles import Role
from lakeward.control.audit import Line, lines
from lakeward.control.db import Database
from lakeward.control.grants import GrantRecord, Grants
from lakeward.control.names import parse_levels
from lakeward.control.objects import LEVELS, TreeObject
from lakeward.control.tokens import SESSION, NewToken, Shown, TokenRecord, Tokens
from lakeward.control.tree import Tree
from lakeward.errors import Forbidden, InvalidName, UnknownObject, UsageError
from lakeward.wiring.actor import actor

DAY_SECONDS = 86_400.0
LONGEST_NAME = 200


class Access:
    """Tokens, grants, and the audit log of one workspace.

    Args:
        database: of the control plane.
        tree: names and what they stand for.
    """

    def __init__(self, database: Database, tree: Tree) -> None:
        self._database = database
        self._tree = tree
        self._tokens = Tokens(database)
        self._grants = Grants(database)

    # Who somebody is -------------------------------------------------------------------------------------------------

    def principal_of(self, user: str, token: str | None = None) -> Principal:
        """Return who somebody is, by their name: for what is done on their behalf later, as they may then.

        Args:
            user: who.
            token: the name of the one that they came with, up to whose ceiling and within whose place they may.

        Raises:
            Forbidden: that token counts no more.
        """
        if token is None:
            return self._grants.of(user)
        found = self._tokens.principal_by(token)
        if found is None:
            raise Forbidden(
                f"the token {token} of {user}, by which this was asked for, counts no more",
                safe="nothing was changed",
                next_step="ask for it anew, with a token that counts",
                token=token,
                principal=user,
            )
        return found

    def shown(self, token: str) -> Shown | None:
        """Return who a token's text is of, and what it is; None: it is none, or counts no more. One statement."""
        return self._tokens.shown(token)

    def session(self, principal: Principal, token: Shown | None = None, *, hours: float) -> str:
        """Begin a session, and return its text.

        Args:
            principal: who logged in.
            token: what they logged in with; None: with a provider of names.
            hours: for how long, at most.
        """
        new = NewToken(principal.name, "a login", kind=SESSION, seconds=hours * 3600)
        if token is not None:
            within = self._at(principal.within)
            new = replace(new, ceiling=principal.ceiling, within=within, parent=token.name)
        return self._tokens.add(new, principal.name)[1]

    def end_session(self, text: str) -> None:
        """End a session, for whoever has its text."""
        self._tokens.end_session(text)

    # Tokens ----------------------------------------------------------------------------------------------------------

    def add_token(
        self,
        user: str,
        *,
        about: str = "",
        role: Role | None = None,
        on: str | None = None,
        at_most: Role | None = None,
        within: str | None = None,
        days: float | None = None,
    ) -> tuple[TokenRecord, str]:
        """Make a token.

        Args:
            user: whose.
            about: what it is for.
            role: a role to grant its user besides, at `on`, or in the whole workspace.
            on: where that is.
            at_most: the highest role that it lets them use; None: all that they have.
            within: the only catalog, schema or dataset that it lets them act in.
            days: for how long it counts; None: until it is revoked.

        Returns:
            What is known of it, and its text, which nobody can find out later.

        Raises:
            Forbidden: whoever acts may not do it.
            UnknownObject: there is no such place.

        Example:
            >>> record, text = ws.access.add_token("ann", role=Role.ADMIN)
            >>> text.startswith(f"lw_{record.name}_")
            True
        """
        require("token.add")
        _check_user(user)
        if on is not None and role is None:
            raise UsageError("a place is granted together with a role", safe="nothing was changed")
        place = self._named(within)
        if role is not None:
            self.set_grant(user, role, on)
        seconds = days * DAY_SECONDS if days is not None else None
        return self._tokens.add(NewToken(user, about, at_most, place, seconds), actor())

    def tokens(self, user: str | None = None) -> Sequence[TokenRecord]:
        """Return the tokens in the order in which they were made, also those that count no more.

        Raises:
            Forbidden: whoever acts may not see them.
        """
        require("token.read")
        return self._tokens.all(user)

    def revoke(self, name: str) -> bool:
        """Let a token count no more, at once, nor the sessions that were begun with it. False: it did not, already.

        Args:
            name: the eight letters behind `lw_`.

        Raises:
            Forbidden: whoever acts may not do it.
            UnknownObject: there is no such token.
        """
        require("token.revoke")
        if not self._tokens.all(name=name, kind=None):
            raise UnknownObject(
                f"there is no token {name}", next_step="`lakeward token list` shows their names", token=name
            )
        return self._tokens.revoke(name, actor())

    # Grants ----------------------------------------------------------------------------------------------------------

    def grants(self, user: str | None = None) -> Sequence[GrantRecord]:
        """Return all grants, or those of somebody, by user and place.

        Raises:
            Forbidden: whoever acts may not see them.
        """
        require("grant.read")
        return self._grants.all(user)

    def set_grant(self, user: str, role: Role, on: str | None = None) -> bool:
        """Give somebody a role, in place of the one that they have there; say whether that changed anything.

        Args:
            user: who.
            role: which.
            on: a catalog, schema or dataset by its full name; None: the whole workspace.

        Raises:
            Forbidden: whoever acts may not do it.
            UnknownObject: there is no such place.
            ConflictError: they are the last admin, and would not be one any more.
        """
        require("grant.set")
        _check_user(user)
        return self._grants.set(user, role, self._named(on), actor())

    def remove_grant(self, user: str, on: str | None = None) -> bool:
        """Take the role away that somebody has at a place; say whether they had one.

        The arguments and errors are those of `set_grant`.
        """
        require("grant.remove")
        return self._grants.remove(user, self._named(on), actor())

    # The audit log ---------------------------------------------------------------------------------------------------

    def audit(
        self,
        *,
        who: str | None = None,
        action: str | None = None,
        subject: str | None = None,
        since: datetime | None = None,
        most: int = 100,
    ) -> Sequence[Line]:
        """Return who changed what, newest first, with what was there before and after.

        Args:
            who: by whom; None: by anybody.
            action: as `flip.run`, or `flip` for all that begin so.
            subject: the full name of what was changed.
            since: from when on.
            most: at most so many.

        Raises:
            Forbidden: whoever acts may not see them.
        """
        return lines(self._database, actor=who, action=action, subject=subject, since=since, most=most)

    # Places ----------------------------------------------------------------------------------------------------------

    def _named(self, name: str | None) -> TreeObject | None:
        """Return what a full name of one to three levels stands for.

        Raises:
            InvalidName: it is none.
            UnknownObject: there is no such place.
        """
        if name is None:
            return None
        for depth, level in enumerate(LEVELS, start=1):
            path = parse_levels(name, depth)
            if path is not None:
                return self._tree.objects.get(level, path)
        raise InvalidName(
            f"{name!r} is no full name of a catalog, schema or dataset",
            next_step='write catalog, catalog.schema or catalog.schema.dataset; "b.c" for a level with a dot',
            name=name,
        )

    def _at(self, slugs: Sequence[str]) -> TreeObject | None:
        # By whom it may not be seen any more, it still is where their token is for.
        with itself():
            return self._tree.objects.get(LEVELS[len(slugs) - 1], slugs) if slugs else None


def _check_user(name: str) -> None:
    if not name.strip() or name != name.strip() or len(name) > LONGEST_NAME or not name.isprintable():
        raise InvalidName(
            f"{name!r} can't name a user",
            safe="nothing was changed",
            next_step="use up to 200 letters without blanks around them",
            name=name,
        )
