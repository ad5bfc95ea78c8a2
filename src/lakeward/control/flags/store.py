"""The flags that are set, in Postgres: each change has its entry in the audit log, and is told to every process."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeward.access.guard import require
from lakeward.access.principal import Place
from lakeward.control.audit import audit, by, note
from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)

CHANNEL = "lakeward_flags"
"""What a change is told on."""


@dataclass(frozen=True)
class Flag:
    """One flag that is set.

    Args:
        kind: `writer` or `reader`.
        name: of the writer or reader.
        dataset_id: the dataset that it is for; None: all.
        value: a mode, or what the reader prefers.
        set_by, set_at: who set it, and when, by the database's clock.
    """

    kind: str
    name: str
    dataset_id: int | None
    value: str
    set_by: str
    set_at: datetime


class FlagTable:
    """The table `lakeward.flags` of one workspace.

    Args:
        database: where it is.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> list[Flag]:
        """Return every flag that is set, by kind and name, the global one first."""
        return [Flag(**row) for row in self._database.fetch(QUERIES["all"])]

    def put(
        self,
        kind: str,
        name: str,
        value: str | None,
        *,
        actor: str,
        dataset: tuple[int, str] | None = None,
        place: Place = (),
    ) -> bool:
        """Set a flag, or clear it; one that is so already stays untouched.

        Args:
            kind: `writer` or `reader`.
            name: of the writer or reader.
            value: the new value; None: it is cleared.
            actor: who does it, for the audit log.
            dataset: id and name of the dataset that it is for; None: all.
            place: of that dataset.

        Returns:
            Whether anything changed.

        Raises:
            Forbidden: whoever acts may not do it.
        """
        action = _action(value)
        require(action, place, dataset[1] if dataset else None)
        key = {"kind": kind, "name": name, "dataset_id": dataset[0] if dataset else None}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"])
            before = connection.execute(QUERIES["before"], key).scalar()
            if before == value:
                return False
            if value is None:
                connection.execute(QUERIES["clear"], key)
            else:
                connection.execute(QUERIES["set"], {**key, "value": value, "actor": by(actor)})
            subject = f"{kind} {name}" + (f" of {dataset[1]}" if dataset else "")
            audit(connection, actor, action, subject, before, value, place)
            connection.execute(QUERIES["tell"])
        return True

    def audit_route(self, writer: str, dataset: str, before: str, after: str, *, actor: str, place: Place = ()) -> None:
        """Note in the audit log that a writer's flag for one dataset has changed its route."""
        note(self._database, actor, _action(after), f"writer {writer} of {dataset}", before, after, place)


def _action(value: str | None) -> str:
    return "flag.set" if value is not None else "flag.clear"
