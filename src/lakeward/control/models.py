"""The tables of registered models: versions that only ever come on top, and their files by content."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy

from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class ModelRow:
    """One version of a model as it is stored; `features` and `outputs` are JSON."""

    name: str
    version: int
    format: str
    sha256: str
    size: int
    entry: str
    origin: str
    features: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]
    added_at: datetime
    added_by: str


@dataclass(frozen=True)
class NewModel:
    """What is to become a version."""

    name: str
    format: str
    sha256: str
    entry: str
    origin: str
    features: Sequence[Mapping[str, Any]]
    outputs: Sequence[Mapping[str, Any]]

    def same_as(self, row: ModelRow) -> bool:
        """Say whether a version is this very model; where its file was does not count."""
        mine = (self.name, self.format, self.sha256, self.entry, list(self.features), list(self.outputs))
        return mine == (row.name, row.format, row.sha256, row.entry, list(row.features), list(row.outputs))


class ModelTables:
    """The models of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def versions(self, name: str | None = None) -> list[ModelRow]:
        """Return the versions of a model, oldest first; of all models, if no name is given."""
        return [ModelRow(**row) for row in self._database.fetch(QUERIES["versions"], {"name": name})]

    def add(
        self, model: NewModel, content: bytes, *, actor: str, check: Callable[[Sequence[ModelRow]], None]
    ) -> tuple[ModelRow, bool]:
        """Store a model as the next version of its name, unless its newest version is the very same.

        Args:
            model: what to store.
            content: its file.
            actor: who adds it.
            check: looks at all models that there are, and may raise; nobody adds one until this is done.

        Returns:
            The version, and whether it is new.
        """
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"])
            rows = _rows(connection)
            check(rows)
            mine = [row for row in rows if row.name == model.name]
            if mine and model.same_as(mine[-1]):
                return mine[-1], False
            version = mine[-1].version + 1 if mine else 1
            facts = {
                **vars(model),
                "version": version,
                "size": len(content),
                "features": json.dumps(model.features, ensure_ascii=False),
                "outputs": json.dumps(model.outputs, ensure_ascii=False),
                "actor": actor,
            }
            connection.execute(QUERIES["store_file"], {"sha256": model.sha256, "content": content})
            connection.execute(QUERIES["store"], facts)
            after = json.dumps({"version": version, "sha256": model.sha256, "format": model.format})
            connection.execute(QUERIES["audit"], {"actor": actor, "subject": model.name, "after": after})
            stored = next(row for row in _rows(connection) if (row.name, row.version) == (model.name, version))
            return stored, True

    def content(self, sha256: str) -> bytes | None:
        """Return the file of that hash as it is stored; None: there is none. The caller verifies it."""
        rows = self._database.fetch(QUERIES["content"], {"sha256": sha256})
        return bytes(rows[0]["content"]) if rows else None


def _rows(connection: sqlalchemy.Connection) -> list[ModelRow]:
    return [ModelRow(**row) for row in connection.execute(QUERIES["versions"], {"name": None}).mappings()]
