"""The tables of registered models: versions that only ever come on top, and their files by content.

A version that a build made is stored with the build's id, before anything is decided. It is there for everybody once
the ledger has committed that build, and never if it has not: both are one commit, the ledger's.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class ModelRow:
    """One version of a model as it is stored; `features` and `outputs` are JSON.

    One that a build made knows it, and the datasets that the build wrote.
    """

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
    build_id: uuid.UUID | None = None
    datasets: Sequence[str] = ()


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
        """Return the versions of a model that are there, oldest first; of all models, if no name is given."""
        return [ModelRow(**row) for row in self._database.fetch(QUERIES["versions"], {"name": name})]

    def add(
        self,
        model: NewModel,
        content: bytes,
        *,
        actor: str,
        check: Callable[[Collection[str]], None],
        build_id: uuid.UUID | None = None,
    ) -> tuple[ModelRow, bool]:
        """Store a model as the next version of its name, unless its newest version is the very same.

        Args:
            model: what to store.
            content: its file.
            actor: who adds it.
            check: looks at the names of all models, and may raise; nobody adds one until this is done.
            build_id: the build that makes it, whose transactions are open; None: it is there at once.

        Returns:
            The version, and whether it is new.
        """
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"])
            taken = {row.name: row.version for row in connection.execute(QUERIES["taken"])}
            check(taken)
            there = [
                ModelRow(**row) for row in connection.execute(QUERIES["versions"], {"name": model.name}).mappings()
            ]
            if there and model.same_as(there[-1]):
                return there[-1], False
            version = taken.get(model.name, 0) + 1
            facts = {
                **vars(model),
                "version": version,
                "size": len(content),
                "features": json.dumps(model.features, ensure_ascii=False),
                "outputs": json.dumps(model.outputs, ensure_ascii=False),
                "actor": by(actor),
                "build_id": build_id,
            }
            connection.execute(QUERIES["store_file"], {"sha256": model.sha256, "content": content})
            added_at = connection.execute(QUERIES["store"], facts).scalar_one()
            after = {"version": version, "sha256": model.sha256, "format": model.format}
            audit(connection, actor, "model.add", model.name, None, after)
        stored = {**vars(model), "version": version, "size": len(content), "added_at": added_at, "added_by": by(actor)}
        return ModelRow(**stored, build_id=build_id), True

    def tidy(self, *, dry_run: bool = False) -> list[tuple[str, int, int]]:
        """Remove versions of builds that were not committed and can't be any more; they were never there for anybody.

        Returns:
            Name, version and size in bytes of each; in a dry run, of each that would go.
        """
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"])
            aborted = [(row.name, row.version, row.size) for row in connection.execute(QUERIES["aborted"])]
            if aborted and not dry_run:
                for name, version, _ in aborted:
                    connection.execute(QUERIES["remove"], {"name": name, "version": version})
                connection.execute(QUERIES["remove_files"])
        return aborted

    def content(self, sha256: str) -> bytes | None:
        """Return the file of that hash as it is stored; None: there is none. The caller verifies it."""
        rows = self._database.fetch(QUERIES["content"], {"sha256": sha256})
        return bytes(rows[0]["content"]) if rows else None
