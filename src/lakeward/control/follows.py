"""What is followed: the sources whose logs of changes are read, and which dataset each of their tables feeds.

A log is known here before it is made at the source, so that none is left there that nobody knows of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.control.sources import log_position

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class FollowedSource:
    """A source whose log is read.

    Args:
        source: its name.
        label: distinguishes its log from others at the source.
        mode: how its changes are written.
        begun_at, begun_by: when and by whom.
    """

    source: str
    label: str
    mode: str
    begun_at: datetime
    begun_by: str


@dataclass(frozen=True)
class FollowedRelation:
    """A table of it.

    Args:
        relation: its full name.
        dataset_id: what it feeds.
        position: how far the log was read for it; None: it was not copied yet.
        version: the dataset's version that has this; None: none has.
        at: when that was decided.
    """

    relation: str
    dataset_id: int
    position: Mapping[str, Any] | None
    version: int | None
    at: datetime | None


class FollowTables:
    """What is followed by one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, source: str | None = None) -> list[FollowedSource]:
        """Return the followed sources by name; of one name, if one is given."""
        return [FollowedSource(**row) for row in self._database.fetch(QUERIES["followed"], {"source": source})]

    def tables(self, source: str) -> list[FollowedRelation]:
        """Return the tables of a followed source, by name."""
        rows = self._database.fetch(QUERIES["tables"], {"source": source})
        return [FollowedRelation(**{**row, "position": log_position(row["position"])}) for row in rows]

    def follower(self, dataset_id: int) -> str | None:
        """Return the source whose log feeds a dataset; None: none does."""
        rows = self._database.fetch(QUERIES["follower"], {"dataset_id": dataset_id})
        return str(rows[0]["source"]) if rows else None

    def begin(self, source: str, label: str, mode: str, tables: Mapping[str, int], actor: str) -> None:
        """Take note of tables that are followed from now on.

        Args:
            source: its name.
            label, mode: of its log; those of one that is there stay.
            tables: the dataset of each, by the full name.
            actor: who.
        """
        with self._database.transaction() as connection:
            connection.execute(QUERIES["begin"], {"source": source, "label": label, "mode": mode, "actor": by(actor)})
            for relation, dataset_id in tables.items():
                connection.execute(QUERIES["add"], {"source": source, "relation": relation, "dataset_id": dataset_id})
            audit(connection, actor, "source.follow", source, None, {"mode": mode, "tables": list(tables)})

    def end(self, source: str, relations: Sequence[str], whole: bool, actor: str) -> None:
        """Forget tables, whose log is gone; with `whole`, that the source was followed."""
        with self._database.transaction() as connection:
            connection.execute(QUERIES["forget"], {"source": source, "relations": list(relations)})
            connection.execute(QUERIES["remove"], {"source": source, "relations": list(relations)})
            if whole:
                connection.execute(QUERIES["end"], {"source": source})
            audit(connection, actor, "source.unfollow", source, {"tables": list(relations)}, None)
