"""The tables of sources: how each is reached, and which table feeds a dataset, read up to where, or of which files.

What was read is written by the decide of the rows that it stands for, and by nothing else: see `deciding.record`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.control.records import FileRead

QUERIES = Queries.beside(__file__)

_LOG = "log"


@dataclass(frozen=True)
class SourceRecord:
    """A source as it is stored; its options hold references to secrets, never secrets.

    Args:
        name: what it is called.
        type: the connector's name.
        options: the connector's, as JSON.
        tables: full names of those that are synced if none is named; empty: all of them.
        added_at, added_by: when and by whom.
    """

    name: str
    type: str
    options: Mapping[str, Any]
    tables: tuple[str, ...]
    added_at: datetime
    added_by: str


@dataclass(frozen=True)
class Feed:
    """What feeds a dataset, and how far it was read with the dataset's version `version`.

    `position` is the connector's own, or that of the source's log of changes, see `in_log`; None: it can't tell one.
    """

    source: str
    relation: str
    position: Mapping[str, Any] | None
    version: int

    @property
    def synced(self) -> Mapping[str, Any] | None:
        """The connector's position; None: it can't tell one, or the log was read since."""
        return None if log_position(self.position) is not None else self.position


def in_log(position: Mapping[str, Any]) -> dict[str, Any]:
    """Return a position in a source's log of changes as it is stored, where a sync does not take it for its own."""
    return {_LOG: position}


def log_position(stored: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """Return the position in the log; None: what is stored is none."""
    found: Mapping[str, Any] | None = stored.get(_LOG) if stored is not None else None
    return found


class SourceTables:
    """The sources of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def all(self, name: str | None = None) -> list[SourceRecord]:
        """Return the sources by name; of one name, if one is given."""
        return [_record(row) for row in self._database.fetch(QUERIES["sources"], {"name": name})]

    def add(
        self, name: str, type_: str, options: Mapping[str, Any], tables: Sequence[str], actor: str
    ) -> SourceRecord | None:
        """Store a source; None: the name is in use."""
        facts = {
            "name": name,
            "type": type_,
            "options": json.dumps(options),
            "tables": list(tables),
            "actor": by(actor),
        }
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["add"], facts).mappings().one_or_none()
            if row is not None:
                audit(connection, actor, "source.add", name, None, {"type": type_, "tables": list(tables)})
        return _record(row) if row is not None else None

    def remove(self, name: str, actor: str) -> bool:
        """Forget a source, and say whether it was there. What it fed stays, and so does how far it was read."""
        with self._database.transaction() as connection:
            removed = connection.execute(QUERIES["remove"], {"name": name}).one_or_none()
            if removed is not None:
                before = {"type": removed.type, "tables": list(removed.tables)}
                audit(connection, actor, "source.remove", name, before, None)
        return removed is not None

    def feed(self, dataset_id: int) -> Feed | None:
        """Return what feeds a dataset; None: no sync has written to it."""
        rows = self._database.fetch(QUERIES["feed"], {"dataset_id": dataset_id})
        return Feed(**rows[0]) if rows else None

    def written_since(self, dataset_id: int, version: int) -> tuple[int, str] | None:
        """Return version and writer of the newest write after `version` that changed rows; None: there is none."""
        rows = self._database.fetch(QUERIES["written_since"], {"dataset_id": dataset_id, "version": version})
        return (int(rows[0]["version"]), str(rows[0]["writer"])) if rows else None

    def written_by_others(self, dataset_id: int, writers: Sequence[str], whole: str) -> tuple[int, str] | None:
        """Return version and writer of the newest write by none of `writers` since `whole` wrote; None: none."""
        asked = {"dataset_id": dataset_id, "writers": list(writers), "whole": whole}
        rows = self._database.fetch(QUERIES["written_by_others"], asked)
        return (int(rows[0]["version"]), str(rows[0]["writer"])) if rows else None

    def files(self, dataset_id: int) -> dict[str, FileRead]:
        """Return the files whose rows a dataset has, by their paths."""
        rows = self._database.fetch(QUERIES["files"], {"dataset_id": dataset_id})
        return {row["path"]: FileRead(**row) for row in rows}


def _record(row: Mapping[Any, Any]) -> SourceRecord:
    return SourceRecord(**{**row, "tables": tuple(row["tables"])})
