"""Moves of Iceberg tables as Postgres knows them: said before they begin, and recorded in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.control.identifiers import TableIdentifier, recorded, resolve
from lakeward.control.records import Claim

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class Relocation:
    """A table's old and new name. Its files stay where they are."""

    source: TableIdentifier
    target: TableIdentifier

    def back(self) -> Relocation:
        """Return the move that takes this one back."""
        return Relocation(self.target, self.source)


@dataclass(frozen=True)
class Relocated:
    """What the catalog did.

    Args:
        way: `rename`, or `register` under the new name and drop of the old one; `found`: it was done already.
        metadata_location: the table's metadata file, the same before and after.
        snapshot_id: that of its `main` branch.
    """

    way: str
    metadata_location: str
    snapshot_id: int | None


@dataclass(frozen=True)
class PastMove:
    """A move that was finished."""

    relocation: Relocation
    way: str
    done_at: datetime


class Moves:
    """The moves of one workspace's tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, claim: Claim, relocation: Relocation) -> None:
        """Say what an open transaction is about to move, before anything happens in the catalog."""
        source, target = relocation.source, relocation.target
        self._database.fetch(
            QUERIES["begin"],
            {
                "id": claim.id,
                "fence": claim.fence,
                "from_namespace": list(source.namespace),
                "from_table": source.name,
                "to_namespace": list(target.namespace),
                "to_table": target.name,
            },
        )

    def of(self, transaction_id: int) -> Relocation | None:
        """Return what a transaction is to move; None: that was never said, and so nothing has happened."""
        rows = self._database.fetch(QUERIES["of"], {"id": transaction_id})
        return _relocation(rows[0]) if rows else None

    def places(self, dataset_id: int) -> list[TableIdentifier]:
        """Return where a dataset's table can be now: where it is recorded, then where a move is bringing it."""
        row = self._database.fetch(QUERIES["places"], {"dataset_id": dataset_id})[0]
        places = [resolve(row["iceberg_namespace"], row["iceberg_table"], row["slug"])]
        if row["to_table"] is not None:
            places.append(TableIdentifier(tuple(row["to_namespace"]), row["to_table"]))
        return places

    def finish(self, claim: Claim, dataset_id: int, relocation: Relocation, done: Relocated) -> bool:
        """Record in one transaction that the table is under its new name, and end the ledger's transaction.

        Args:
            claim: the open transaction; its lease may have run out, as long as nobody took it over.
            dataset_id: whose table.
            relocation: what was moved.
            done: what the catalog did.

        Returns:
            False: another process took over, and nothing is recorded.
        """
        key = {"id": claim.id, "fence": claim.fence, "dataset_id": dataset_id}
        facts = {**key, **vars(done)}
        target = relocation.target
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"], key)
            committed = connection.execute(QUERIES["commit"], key).one_or_none()
            if committed is None:
                return False
            connection.execute(QUERIES["place"], {**key, **recorded(target)})
            placed = {"namespace": list(target.namespace), "table_name": target.name}
            connection.execute(QUERIES["log_move"], {**facts, **placed, "version": committed.parent_version})
            connection.execute(QUERIES["done"], facts)
            connection.execute(QUERIES["release"], key)
        return True

    def names(self) -> dict[int, set[TableIdentifier]]:
        """Return all names that a move began or ended with, finished or not, by the dataset's id."""
        found: dict[int, set[TableIdentifier]] = {}
        for row in self._database.fetch(QUERIES["names"]):
            found.setdefault(row["dataset_id"], set()).add(TableIdentifier(tuple(row["namespace"]), row["name"]))
        return found

    def last(self, dataset_id: int) -> PastMove | None:
        """Return the newest finished move of a dataset, or None."""
        rows = self._database.fetch(QUERIES["last"], {"dataset_id": dataset_id})
        return PastMove(_relocation(rows[0]), rows[0]["way"], rows[0]["done_at"]) if rows else None


def _relocation(row: sqlalchemy.RowMapping) -> Relocation:
    return Relocation(
        TableIdentifier(tuple(row["from_namespace"]), row["from_table"]),
        TableIdentifier(tuple(row["to_namespace"]), row["to_table"]),
    )
