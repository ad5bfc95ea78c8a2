"""Grants: which role somebody has where. The place is kept by its id, so that a rename changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy

from lakeward.access.principal import Grant, Principal
from lakeward.access.roles import Role
from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.control.names import full_name
from lakeward.control.objects import TreeObject
from lakeward.errors import ConflictError

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class GrantRecord:
    """A role that somebody has.

    Args:
        user: who.
        role: which.
        path: where; `()`: in the whole workspace.
        granted_at, granted_by: when, and by whom.
    """

    user: str
    role: Role
    path: tuple[str, ...]
    granted_at: datetime
    granted_by: str

    @property
    def where(self) -> str:
        """The place's full name; empty for the whole workspace."""
        return full_name(self.path)

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        at = self.granted_at.isoformat()
        return {
            "user": self.user,
            "role": str(self.role),
            "on": self.where or None,
            "granted_at": at,
            "granted_by": self.granted_by,
        }


class Grants:
    """The grants of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, user: str) -> Principal:
        """Return who somebody is: what they may do, wherever; one who has no grant may nothing."""
        rows = self._database.fetch(QUERIES["of"], {"user": user})
        return Principal(user, grants_of([(row["role"], row["place"]) for row in rows]))

    def all(self, user: str | None = None) -> list[GrantRecord]:
        """Return all grants, or those of somebody, by user and place."""
        return [
            GrantRecord(
                row["user_name"], role_named(row["role"]), tuple(row["path"]), row["granted_at"], row["granted_by"]
            )
            for row in self._database.fetch(QUERIES["all"], {"user": user})
        ]

    def set(self, user: str, role: Role, where: TreeObject | None, actor: str) -> bool:
        """Give somebody a role, in place of the one that they have there; say whether that changed anything.

        Raises:
            Forbidden: whoever acts may not do it.
            ConflictError: they are the last admin.
        """
        key = {"user": user, **ids_of(where)}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"])
            before = connection.execute(QUERIES["role"], key).scalar()
            if before == str(role):
                return False
            _check_admins(connection, user, before, where)
            connection.execute(QUERIES["set"], {**key, "role": str(role), "actor": by(actor)})
            place = _named(where)
            told = {"role": before, **place} if before is not None else None
            audit(connection, actor, "grant.set", user, told, {"role": str(role), **place})
        return True

    def remove(self, user: str, where: TreeObject | None, actor: str) -> bool:
        """Take the role away that somebody has at a place; say whether they had one.

        Raises:
            Forbidden: whoever acts may not do it.
            ConflictError: they are the last admin.
        """
        key = {"user": user, **ids_of(where)}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"])
            before = connection.execute(QUERIES["role"], key).scalar()
            if before is None:
                return False
            _check_admins(connection, user, before, where)
            connection.execute(QUERIES["remove"], key)
            audit(connection, actor, "grant.remove", user, {"role": before, **_named(where)}, None)
        return True


def grants_of(rows: Sequence[tuple[str, Sequence[str] | None]]) -> tuple[Grant, ...]:
    """Return the grants of roles and places; those of a place that is purged are none."""
    return tuple(Grant(role_named(role), tuple(place)) for role, place in rows if place is not None)


def role_named(name: str) -> Role:
    """Return a role by its name."""
    return Role[name.upper()]


def ids_of(where: TreeObject | None) -> dict[str, int | None]:
    """Return the columns that hold a place."""
    ids: dict[str, int | None] = {"catalog_id": None, "schema_id": None, "dataset_id": None}
    if where is not None:
        ids[f"{where.level}_id"] = where.id
    return ids


def _named(where: TreeObject | None) -> dict[str, str]:
    return {"on": where.name} if where is not None else {}


def _check_admins(connection: sqlalchemy.Connection, user: str, before: str | None, where: TreeObject | None) -> None:
    """Refuse to leave a workspace without an admin."""
    if before != str(Role.ADMIN) or where is not None:
        return
    if connection.execute(QUERIES["other_admins"], {"user": user}).scalar() == 0:
        raise ConflictError(
            f"{user} is the last admin of the workspace",
            safe="nothing was changed",
            next_step="make somebody else one first: `lakeward grant set NAME admin`",
            user=user,
        )
