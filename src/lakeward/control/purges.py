"""Purges: the end of what was dropped, as Postgres knows it: what is due, what was begun, and which files are to go.

due       its time to come back is over, and nobody reads it
begun     from here on it can't come back; whoever finds this goes on
listed    every file that goes is known, before the first one goes
purged    rows and files are gone; the ledger's past stays, and the slug is free

"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from lakeward.control.audit import audit
from lakeward.control.db import Database, Queries
from lakeward.control.objects import LEVELS, TreeObject, object_of

QUERIES = Queries.beside(__file__)

ACTOR = "maintain"
"""Who it is in the audit log where the owner runs it: it only does what a drop has asked for."""

BATCH = 500
"""So many files are asked for, or noted, at a time."""


@dataclass(frozen=True)
class DoomedFile:
    """A file that goes.

    Args:
        path: its place, as the table names it.
        kind: `metadata file`, `manifest` or `data file`.
        bytes: its size.
        position: its place in the list.
    """

    path: str
    kind: str
    bytes: int
    position: int = 0


@dataclass(frozen=True)
class FileList:
    """That the files of a purge are listed; `location` is the table's, None where nothing of it is ours to remove."""

    location: str | None


@dataclass(frozen=True)
class DueDataset:
    """A dataset to be purged; `begun`: that was begun before."""

    id: int
    begun: bool


class Purges:
    """The purges of one workspace."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self, grace_seconds: float) -> list[DueDataset]:
        """Return what is to be purged now. What was dropped within the grace, or is read by a build, is not."""
        return [DueDataset(**row) for row in self._database.fetch(QUERIES["due"], {"grace": grace_seconds})]

    def holders(self, arm: str) -> list[int]:
        """Return the ids of the datasets that an arm has something of; of dropped ones until their files are listed."""
        return [row["dataset_id"] for row in self._database.fetch(QUERIES["holders"], {"arm": arm})]

    def begin(self, dataset_id: int) -> bool:
        """Say that a dataset is being purged, and end its versions; False if it came back, or is purged already."""
        key = {"dataset_id": dataset_id}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"], key)
            connection.execute(QUERIES["begin"], key)
            if connection.execute(QUERIES["begun"], key).first() is None:
                return False
            connection.execute(QUERIES["end_versions"], key)
        return True

    def listed(self, dataset_id: int) -> FileList | None:
        """Return that the files are listed; None: they are not yet."""
        rows = self._database.fetch(QUERIES["begun"], {"dataset_id": dataset_id})
        return FileList(rows[0]["location"]) if rows and rows[0]["listed_at"] is not None else None

    def list_files(self, dataset_id: int, location: str | None, files: Iterable[DoomedFile]) -> None:
        """Note all files that are to go, or none; if another process was faster, its list stands."""
        key = {"dataset_id": dataset_id}
        with self._database.transaction() as connection:
            row = connection.execute(QUERIES["lock_purge"], key).one_or_none()
            if row is None or row.listed_at is not None:
                return
            batch: list[dict[str, object]] = []
            for position, file in enumerate(files, start=1):
                batch.append({**key, **vars(file), "position": position})
                if len(batch) == BATCH:
                    connection.execute(QUERIES["add_file"], batch)
                    batch.clear()
            if batch:
                connection.execute(QUERIES["add_file"], batch)
            connection.execute(QUERIES["listed"], {**key, "location": location})

    def files(self, dataset_id: int) -> Iterator[DoomedFile]:
        """Yield the files that are still to go. They may be forgotten meanwhile."""
        after = 0
        while True:
            asked = {"dataset_id": dataset_id, "after": after, "most": BATCH}
            rows = self._database.fetch(QUERIES["files"], asked)
            yield from (DoomedFile(**row) for row in rows)
            if len(rows) < BATCH:
                return
            after = rows[-1]["position"]

    def forget_file(self, dataset_id: int, file: DoomedFile) -> None:
        """Take a file off the list that is gone, or has to stay."""
        self._database.fetch(QUERIES["forget_file"], {"dataset_id": dataset_id, "position": file.position})

    def finish(self, dataset_id: int, name: str) -> None:
        """Record that nothing is left of a dataset but its past. Repeating it changes nothing."""
        key = {"dataset_id": dataset_id}
        with self._database.transaction() as connection:
            connection.execute(QUERIES["lock"], key)
            begun = connection.execute(QUERIES["forget_purge"], key).one_or_none()
            if begun is None:
                return
            connection.execute(QUERIES["forget_rules"], key)
            connection.execute(QUERIES["purged"], key)
            audit(connection, ACTOR, "dataset.purge", name, {"begun_at": begun.begun_at}, None)

    def is_purged(self, dataset_id: int) -> bool:
        """Say whether nothing is left of a dataset but its past."""
        return bool(self._database.fetch(QUERIES["is_purged"], {"dataset_id": dataset_id}))

    def due_parents(self, level: str, workspace: int) -> list[TreeObject]:
        """Return the dropped schemas or catalogs whose time is over and in which nothing is left."""
        asked = {"level": level, "workspace": workspace, "depth": LEVELS.index(level) + 1}
        return [object_of(row) for row in self._database.fetch(QUERIES["due_parents"], asked)]

    def finish_parent(self, what: TreeObject) -> bool:
        """Record that nothing is left of a schema or catalog; False if it, or something in it, came back meanwhile."""
        with self._database.transaction() as connection:
            if connection.execute(QUERIES[f"purged_{what.level}"], {"id": what.id}).first() is None:
                return False
            connection.execute(QUERIES["forget_old_names"], {"level": what.level, "id": what.id})
            audit(connection, ACTOR, f"{what.level}.purge", what.name, None, None)
        return True
