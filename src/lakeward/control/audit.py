"""The audit log: who changed what, with what was there before and after.

A line is written in the transaction that makes the change, and only for somebody who may make it: so there is no change
without a line, and none that is not allowed.
"""

from __future__ import annotations

import getpass
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy

from lakeward.access.guard import principal, require
from lakeward.access.principal import Place
from lakeward.control.db import Database, Pipeline, Queries

QUERIES = Queries.beside(__file__)


def audit(
    connection: sqlalchemy.Connection,
    actor: str,
    action: str,
    subject: str,
    before: object,
    after: object,
    place: Place = (),
) -> None:
    """Write a line, in the transaction that does what it says; see `entry`."""
    connection.execute(QUERIES["line"], entry(actor, action, subject, before, after, place))


def note(
    database: Database, actor: str | None, action: str, subject: str, before: object, after: object, place: Place = ()
) -> None:
    """Write a line of what is done in steps that are committed one by one; see `entry`."""
    database.fetch(QUERIES["line"], entry(actor, action, subject, before, after, place))


def send_line(send: Pipeline, line: Mapping[str, object]) -> None:
    """Send a line, as `entry` returns it, with the statements of a transaction."""
    send(QUERIES, "line", line)


def entry(
    actor: str | None, action: str, subject: str, before: object, after: object, place: Place = ()
) -> dict[str, object]:
    """Return the parameters of the statement that writes a line.

    Args:
        actor: what the owner is called, see `by`.
        action: one of `ACTIONS`.
        subject: what it is done to, by its name.
        before, after: what there was, and what there is then, as JSON; None: nothing.
        place: where; `()`: in the whole workspace.

    Raises:
        Forbidden: whoever acts may not do it.
    """
    require(action, place, subject if place else None)
    texts = {name: _json(value) for name, value in (("before", before), ("after", after))}
    return {"actor": by(actor), "action": action, "subject": subject, **texts}


def by(actor: str | None = None) -> str:
    """Return the name of who acts, as the log has it.

    Args:
        actor: what the owner is called, a pipeline say; None: as the user of this process.
    """
    return principal().name or actor or _user()


@dataclass(frozen=True)
class Line:
    """A line of the log: when who changed what, what there was, and what there is then."""

    at: datetime
    actor: str
    action: str
    subject: str
    before: Any
    after: Any

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {**vars(self), "at": self.at.isoformat()}


def lines(
    database: Database,
    *,
    actor: str | None = None,
    action: str | None = None,
    subject: str | None = None,
    since: datetime | None = None,
    most: int = 100,
) -> list[Line]:
    """Return lines of the log, and what the ledger has committed, newest first.

    Args:
        database: of the control plane.
        actor: by whom; None: by anybody.
        action: one of `ACTIONS`, or what stands before its dot; None: any.
        subject: the full name of what was changed; None: anything.
        since: from when on.
        most: at most so many.

    Raises:
        Forbidden: whoever acts may not see them.
    """
    require("audit.read")
    asked = {"actor": actor, "action": action, "subject": subject, "since": since, "most": most}
    return [Line(**row) for row in database.fetch(QUERIES["lines"], asked)]


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return "unknown"


def _json(value: object) -> str | None:
    return json.dumps(value, default=str, ensure_ascii=False) if value is not None else None
