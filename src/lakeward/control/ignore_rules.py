"""Rules that differences between the arms in a column are known, and accepted until a day: by whom, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from lakeward.access.principal import Place
from lakeward.control.audit import audit
from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class IgnoreRule:
    """One rule. It never hides that a row is missing on an arm, or is there twice.

    Args:
        field_id: the column's, so that a rule ends with its column, and stays with one that is renamed.
        reason: why differences are accepted.
        owner: who says so.
        until: from this moment on it counts no more.
        expired: whether that is so, by the database's clock.
    """

    field_id: int
    reason: str
    owner: str
    until: datetime
    expired: bool


@dataclass(frozen=True)
class Column:
    """A column of a dataset.

    Args:
        dataset_id, field_id: which.
        name: of both, for people.
        place: of the dataset.
    """

    dataset_id: int
    field_id: int
    name: str
    place: Place

    @property
    def key(self) -> dict[str, object]:
        """What its rule is stored under."""
        return {"dataset_id": self.dataset_id, "field_id": self.field_id}


class IgnoreRules:
    """The table `lakeward.ignore_rules` of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, column: Column, *, reason: str, owner: str, until: datetime, actor: str) -> None:
        """Write a rule down, in place of the one that the column has, if it has one.

        Raises:
            Forbidden: whoever acts may not do it.
        """
        after = {"reason": reason, "owner": owner, "until": until}
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["before"], column.key).mappings().one_or_none()
            connection.execute(QUERIES["put"], {**column.key, **after})
            before = dict(row) if row is not None else None
            audit(connection, actor, "parity.ignore", column.name, before, after, column.place)

    def remove(self, column: Column, *, actor: str) -> bool:
        """Take a column's rule away; say whether there was one.

        Raises:
            Forbidden: whoever acts may not do it.
        """
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["remove"], column.key).mappings().one_or_none()
            if row is not None:
                audit(connection, actor, "parity.count", column.name, dict(row), None, column.place)
        return row is not None

    def of(self, dataset_id: int) -> list[IgnoreRule]:
        """Return the rules of a dataset, also those that have expired, by column."""
        return [IgnoreRule(**row) for row in self._database.fetch(QUERIES["of"], {"dataset_id": dataset_id})]
