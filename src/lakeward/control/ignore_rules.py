"""Rules that differences between the arms in a column are known, and accepted until a day: by whom, and why."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

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


class IgnoreRules:
    """The table `lakeward.ignore_rules` of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, dataset_id: int, field_id: int, *, reason: str, owner: str, until: datetime) -> None:
        """Write a rule down, in place of the one that the column has, if it has one."""
        key = {"dataset_id": dataset_id, "field_id": field_id}
        self._database.fetch(QUERIES["put"], {**key, "reason": reason, "owner": owner, "until": until})

    def remove(self, dataset_id: int, field_id: int, *, actor: str) -> bool:
        """Take a column's rule away; say whether there was one."""
        key = {"dataset_id": dataset_id, "field_id": field_id, "actor": actor}
        return bool(self._database.fetch(QUERIES["remove"], key))

    def of(self, dataset_id: int) -> list[IgnoreRule]:
        """Return the rules of a dataset, also those that have expired, by column."""
        return [IgnoreRule(**row) for row in self._database.fetch(QUERIES["of"], {"dataset_id": dataset_id})]
