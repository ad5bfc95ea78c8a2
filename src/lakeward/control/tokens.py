"""Tokens: what people and programs show to say who they are. The text is told once, and only its hash is kept.

A token counts for what its user may do, at most up to its ceiling, and within its place. A session is what a login
makes of one: it is short-lived, and ends with the token that it was begun with.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import sqlalchemy

from lakeward.access.principal import Principal
from lakeward.access.roles import Role
from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.control.grants import grants_of, ids_of, role_named
from lakeward.control.names import full_name
from lakeward.control.objects import TreeObject

QUERIES = Queries.beside(__file__)

TOKEN: Final = "token"
SESSION: Final = "session"

_FORM = re.compile(r"lw_([a-z0-9]{8})_[A-Za-z0-9_-]{43}")
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True)
class NewToken:
    """A token that is to be made.

    Args:
        user: whose.
        about: what it is for, for people.
        ceiling: the highest role that it lets its user use.
        within: the only place that it lets them act in; None: all that they may.
        seconds: for how long it counts; None: until it is revoked.
        kind: `token` or `session`.
        parent: the name of the token that a session was begun with.
    """

    user: str
    about: str = ""
    ceiling: Role | None = None
    within: TreeObject | None = None
    seconds: float | None = None
    kind: str = TOKEN
    parent: str | None = None


@dataclass(frozen=True)
class TokenRecord:
    """A token as it is known; its text is nowhere.

    Args:
        name: what it is called by: the beginning of its text.
        kind, user, about, ceiling: see `NewToken`.
        path: the only place that it lets its user act in; `()`: any.
        made_at, made_by: when, and by whom.
        expires_at, used_at, revoked_at: when it ends, was used last (to the minute), and was revoked, if at all.
        counts: whether it can be used now.
    """

    name: str
    kind: str
    user: str
    about: str
    ceiling: Role | None
    path: tuple[str, ...]
    made_at: datetime
    made_by: str
    expires_at: datetime | None
    used_at: datetime | None
    revoked_at: datetime | None
    counts: bool

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        told: dict[str, object] = {**vars(self), "ceiling": str(self.ceiling) if self.ceiling is not None else None}
        told["within"] = full_name(told.pop("path")) or None  # type: ignore[arg-type]
        return {key: value.isoformat() if isinstance(value, datetime) else value for key, value in told.items()}


@dataclass(frozen=True)
class Shown:
    """What a token that was shown says: who it is of, and whether it is a session."""

    principal: Principal
    name: str
    kind: str


class Tokens:
    """The tokens of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, new: NewToken, actor: str) -> tuple[TokenRecord, str]:
        """Make a token.

        Returns:
            What is known of it, and its text, which nobody can find out later.

        Raises:
            Forbidden: whoever acts may not do it.
        """
        name = "".join(secrets.choice(_LETTERS) for _ in range(8))
        text = f"lw_{name}_{secrets.token_urlsafe(32)}"
        facts = {
            "name": name,
            "hash": _hash(text),
            "kind": new.kind,
            "user": new.user,
            "about": new.about,
            "ceiling": str(new.ceiling) if new.ceiling is not None else None,
            "actor": by(actor),
            "seconds": new.seconds,
            "parent": new.parent,
            **ids_of(new.within),
        }
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["add"], facts).mappings().one()
            if new.kind == TOKEN:
                path = new.within.path if new.within is not None else ()
                after = {"token": name, "ceiling": facts["ceiling"], "within": full_name(path) or None}
                audit(connection, actor, "token.add", new.user, None, {**after, "expires_at": row["expires_at"]})
        return self.all(name=name, kind=None)[0], text

    def shown(self, text: str) -> Shown | None:
        """Return what a token's text says; None: it is none, or counts no more."""
        found = _FORM.fullmatch(text)
        if found is None:
            return None
        hashed = _hash(text)
        rows = self._database.fetch(QUERIES["principal"], {"name": found[1], "hash": hashed})
        if not rows or not hmac.compare_digest(bytes(rows[0]["hash"]), hashed) or rows[0]["within"] is None:
            return None
        return Shown(_principal(rows[0]), found[1], rows[0]["kind"])

    def principal_by(self, name: str) -> Principal | None:
        """Return who came with the token of a name, with what they may do by it now; None: it counts no more."""
        rows = self._database.fetch(QUERIES["principal"], {"name": name, "hash": None})
        return _principal(rows[0]) if rows and rows[0]["within"] is not None else None

    def all(self, user: str | None = None, name: str | None = None, kind: str | None = TOKEN) -> list[TokenRecord]:
        """Return the tokens in the order in which they were made: of a user, of a name, of a kind."""
        rows = self._database.fetch(QUERIES["all"], {"user": user, "name": name, "kind": kind})
        return [_record(row) for row in rows]

    def revoke(self, name: str, actor: str) -> bool:
        """Let a token count no more, nor the sessions that were begun with it; False: it did not, already.

        Raises:
            Forbidden: whoever acts may not do it.
        """
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["revoke"], {"name": name}).mappings().one_or_none()
            if row is not None:
                audit(connection, actor, "token.revoke", row["user_name"], {"token": name}, None)
        return row is not None

    def end_session(self, text: str) -> None:
        """End a session, for whoever has its text. Those that are over are forgotten."""
        found = _FORM.fullmatch(text)
        if found is not None:
            self._database.fetch(QUERIES["end_session"], {"name": found[1], "hash": _hash(text)})
            self._database.fetch(QUERIES["forget_sessions"])


def _hash(text: str) -> bytes:
    # A token is as hard to guess as its hash is: no slow one is needed, as for passwords.
    return hashlib.sha256(text.encode()).digest()


def _principal(row: sqlalchemy.RowMapping) -> Principal:
    ceiling = role_named(row["ceiling"]) if row["ceiling"] is not None else Role.ADMIN
    grants = grants_of(list(zip(row["roles"], row["places"], strict=True)))
    return Principal(row["user_name"], grants, ceiling, tuple(row["within"]), row["token"])


def _record(row: sqlalchemy.RowMapping) -> TokenRecord:
    names = ("name", "kind", "about", "made_at", "made_by", "expires_at", "used_at", "revoked_at", "counts")
    ceiling = role_named(row["ceiling"]) if row["ceiling"] is not None else None
    return TokenRecord(
        user=row["user_name"], ceiling=ceiling, path=tuple(row["path"] or ()), **{name: row[name] for name in names}
    )
