"""Somebody who acts: by which name, and what they may do where."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from lakeward.access.roles import Role

Place = tuple[str, ...]
"""Slugs from the catalog inwards, which no rename changes: `()` is the whole workspace, three are a dataset."""


@dataclass(frozen=True)
class Grant:
    """A role somewhere, and in all that is inside.

    Args:
        role: which.
        place: where.
    """

    role: Role
    place: Place = ()


@dataclass(frozen=True)
class Principal:
    """Somebody who acts.

    Args:
        name: as the audit log has it.
        grants: their roles.
        ceiling: the highest role that the token they came with lets them use.
        within: the only place that this token lets them act in.
        token: its name, or that of the token which their session was begun with; None: they came otherwise.
    """

    name: str
    grants: tuple[Grant, ...] = ()
    ceiling: Role = Role.ADMIN
    within: Place = ()
    token: str | None = field(default=None, compare=False)

    @property
    def regions(self) -> tuple[Grant, ...]:
        """Their grants, as far as the token lets them use them."""
        return tuple(
            Grant(min(grant.role, self.ceiling), max(grant.place, self.within, key=len))
            for grant in self.grants
            if _meet(grant.place, self.within)
        )

    def role_in(self, place: Place) -> Role | None:
        """Return the role that they have in a place, by what they have there and around it; None: they have none."""
        return max((each.role for each in self.regions if _holds(each.place, place)), default=None)

    def sees(self, place: Place) -> bool:
        """Say whether they may know that a place is there: they have a role in it, or in something that is inside."""
        return any(_meet(each.place, place) for each in self.regions)


def _meet(one: Place, other: Place) -> bool:
    return _holds(one, other) or _holds(other, one)


def _holds(outer: Place, inner: Place) -> bool:
    return inner[: len(outer)] == outer


OWNER: Final = Principal("", (Grant(Role.ADMIN),))
"""Whoever opened the workspace with its database's own credentials: nothing could be kept from them."""

NOBODY: Final = Principal("nobody")
"""May do nothing."""
