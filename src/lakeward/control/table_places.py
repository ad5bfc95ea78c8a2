"""Where the Iceberg tables of datasets are, since when and how they came there. Postgres knows; no catalog is asked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import sqlalchemy

from lakeward.control.db import Database, Queries
from lakeward.control.identifiers import TableIdentifier, resolve
from lakeward.control.moves import PastMove, Relocation
from lakeward.errors import UnknownObject

QUERIES = Queries.beside(__file__)

UNDO_WRITER = "move.undo"
"""The named place in the product that takes moves back."""

BORN = "born"
"""The way of a table that was never moved."""


@dataclass(frozen=True)
class TablePlace:
    """Where one dataset's table is.

    Args:
        identifier: its name in the catalog; where a table would be, if it has none.
        version: the newest version that it holds; None: the dataset has no table.
        snapshot_id: that of the version.
        born_at: when the first version that it ever held was committed.
        first: where it was before it was ever moved.
        last: its newest finished move, if any.
        taken_back: that move took the one before it back.
        going: where a move that is under way, or was cut short, brings it.
        backfill: rows are being brought to or from it.
    """

    identifier: TableIdentifier
    version: int | None
    snapshot_id: int | None
    born_at: datetime | None
    first: TableIdentifier
    last: PastMove | None
    taken_back: bool
    going: TableIdentifier | None
    backfill: bool

    @property
    def way(self) -> str:
        """How it came where it is."""
        return self.last.way if self.last is not None else BORN

    @property
    def since(self) -> datetime | None:
        """When it came there; None: it has no table."""
        return self.last.done_at if self.last is not None else self.born_at

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        return {
            "identifier": list(self.identifier.parts),
            "version": self.version,
            "snapshot_id": self.snapshot_id,
            "since": self.since.isoformat() if self.since is not None else None,
            "way": self.way,
            "born_as": list(self.first.parts),
            "moving_to": list(self.going.parts) if self.going is not None else None,
        }


class TablePlaces:
    """The places of one workspace's tables."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self) -> dict[int, TablePlace]:
        """Return that of every dataset, with a table or without, by the dataset's id."""
        return {row["dataset_id"]: _place(row) for row in self._database.fetch(QUERIES["places"], {"id": None})}

    def of(self, dataset_id: int) -> TablePlace:
        """Return that of one dataset.

        Raises:
            UnknownObject: it was purged.
        """
        rows = self._database.fetch(QUERIES["places"], {"id": dataset_id})
        if not rows:
            raise UnknownObject(f"unknown dataset id {dataset_id}")
        return _place(rows[0])


def _place(row: sqlalchemy.RowMapping) -> TablePlace:
    identifier = resolve(row["iceberg_namespace"], row["iceberg_table"], row["slug"])
    return TablePlace(
        identifier=identifier,
        version=row["version"],
        snapshot_id=row["snapshot_id"],
        born_at=row["born_at"],
        first=_identifier(row["first_namespace"], row["first_table"]) or identifier,
        last=_last(row),
        taken_back=row["writer"] == UNDO_WRITER,
        going=_identifier(row["going_namespace"], row["going_table"]),
        backfill=row["backfill"],
    )


def _last(row: sqlalchemy.RowMapping) -> PastMove | None:
    source = _identifier(row["from_namespace"], row["from_table"])
    target = _identifier(row["to_namespace"], row["to_table"])
    if source is None or target is None:
        return None
    return PastMove(Relocation(source, target), row["way"], row["done_at"])


def _identifier(namespace: list[str] | None, name: str | None) -> TableIdentifier | None:
    return TableIdentifier(tuple(namespace), name) if namespace is not None and name is not None else None
