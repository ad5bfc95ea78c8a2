"""Catalogs, schemas and datasets alike: looking them up by any name that they had, listing and renaming them.

A rename changes the human name and nothing else: slugs, and so tables and files, are called what they were.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import psycopg
import sqlalchemy

from lakeward.access.guard import principal, require, sees
from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.control.names import check_text, full_name, parse_levels, quote_level
from lakeward.errors import DroppedObject, InvalidName, NameTaken, UnknownObject, UsageError

QUERIES = Queries.beside(__file__)

LEVELS: Final = ("catalog", "schema", "dataset")
"""From the outermost inwards."""


@dataclass(frozen=True)
class Drop:
    """The step in which something was dropped, perhaps with more.

    Args:
        id: of the step.
        at, by: when, by the database's clock, and by whom.
        until: until when it can come back.
    """

    id: int
    at: datetime
    by: str
    until: datetime


@dataclass(frozen=True)
class TreeObject:
    """A catalog, schema or dataset.

    Args:
        level: one of `LEVELS`.
        ids, path, slugs: its own and its parents', the catalog's first; `ids[-1]` is its own.
        created_at: when it was made.
        drop: when and by whom it was dropped; None: it was not.
    """

    level: str
    ids: tuple[int, ...]
    path: tuple[str, ...]
    slugs: tuple[str, ...]
    created_at: datetime
    drop: Drop | None = None

    @property
    def id(self) -> int:
        """Its number among those of its level."""
        return self.ids[-1]

    @property
    def name(self) -> str:
        """The full name, as people write it."""
        return full_name(self.path)


@dataclass(frozen=True)
class Listed:
    """An object and what is in it: of a dropped one, what was dropped with it.

    `rows` is the sum of its datasets' rows, from the ledger. Bytes on disk are not told: they cost a look at each file.
    """

    what: TreeObject
    schemas: int
    datasets: int
    rows: int

    def to_json(self) -> dict[str, object]:
        """Return it as `--output json` prints it."""
        what, counts = self.what, {"schemas": self.schemas, "datasets": self.datasets, "rows": self.rows}
        inside = {name: count for name, count in counts.items() if LEVELS.index(what.level) < _DEPTH[name]}
        drop = what.drop
        gone = {"dropped_at": drop.at, "dropped_by": drop.by, "undo_until": drop.until} if drop is not None else {}
        return {"name": what.name, "slug": what.slugs[-1], "created_at": what.created_at, **inside, **gone}


_DEPTH = {"schemas": 1, "datasets": 2, "rows": 3}


class Objects:
    """Catalogs, schemas and datasets of one workspace.

    Args:
        database: where they are.
        workspace: its id.
    """

    def __init__(self, database: Database, workspace: int) -> None:
        self._database = database
        self._workspace = workspace

    def find(self, level: str, path: Sequence[str]) -> TreeObject | None:
        """Return the live object of that full name, or of those slugs; None: there is none.

        What was renamed is not found by a name that it had, even where that is its slug.
        """
        parents, found = [self._workspace], None
        for depth, name in enumerate(path):
            row = next((each for each in self._children(LEVELS[depth], parents, name) if _is_meant(each)), None)
            if row is None:
                return None
            found, parents = object_of(row), [row["id"]]
        return found if found is not None and found.level == level and sees(found.slugs) else None

    def get(self, level: str, path: Sequence[str]) -> TreeObject:
        """Return the live object of that full name.

        Raises:
            UnknownObject: there is none; says what became of one that had this name.
        """
        found = self.find(level, path)
        if found is None:
            former = self.former(level, path)
            raise gone(level, path, former) if former is not None else _unknown(level, path)
        return found

    def former(self, level: str, path: Sequence[str]) -> TreeObject | None:
        """Return what had that full name once: what was renamed and is live, else the one that was dropped last."""
        return next(iter(self._formers(level, path)), None)

    def dropped(self, level: str, path: Sequence[str]) -> TreeObject | None:
        """Return the object of that full name that was dropped last; None: none was, or it is purged."""
        return next((each for each in self._formers(level, path) if each.drop is not None), None)

    def all(self, level: str, *, dropped: bool = False) -> list[Listed]:
        """Return all objects of a level by name, bytewise.

        Args:
            level: one of `LEVELS`.
            dropped: those that were dropped, and are not purged; else those that are live.
        """
        asked = {"level": level, "depth": LEVELS.index(level) + 1, "workspace": self._workspace, "dropped": dropped}
        rows = self._database.fetch(QUERIES["list"], asked)
        found = [Listed(object_of(row), row["schemas"], row["datasets"], row["rows"]) for row in rows]
        return [self._seen(each) for each in found if sees(each.what.slugs)]

    def _seen(self, listed: Listed) -> Listed:
        """Return an object with what of it is seen by whoever sees only a part."""
        what = listed.what
        if principal().role_in(what.slugs) is not None:
            return listed
        asked = {"depth": len(what.ids), "id": what.id, "drop_id": what.drop.id if what.drop is not None else None}
        rows = [row for row in self._database.fetch(QUERIES["parts"], asked) if sees(tuple(row["slugs"]))]
        counts = Counter(row["level"] for row in rows)
        return Listed(what, counts["schema"], counts["dataset"], sum(row["row_count"] or 0 for row in rows))

    def inside(self, what: TreeObject) -> dict[str, dict[int, str]]:
        """Return the full names of what is live in an object, itself included, by level and id."""
        found: dict[str, dict[int, str]] = {level: {} for level in LEVELS}
        for row in self._database.fetch(QUERIES["inside"], {"depth": len(what.ids), "id": what.id}):
            found[row["level"]][row["id"]] = full_name(row["path"])
        return found

    def check_rename(self, what: TreeObject, name: str) -> None:
        """Raise what `rename` would; changes nothing."""
        if not self._database.fetch(QUERIES["is_valid_name"], {"name": name})[0]["valid"]:
            raise invalid_name(what.level, name)
        twin = self._sibling(what, name)
        if twin is not None and twin["id"] != what.id:
            raise _name_taken(what, name, twin["name"])

    def rename(self, what: TreeObject, name: str, actor: str) -> TreeObject:
        """Give a live object another name under its parent; nothing physical is touched. Its own name changes nothing.

        Args:
            what: which one.
            name: the new name of its own level, any text.
            actor: who does it, for the audit log.

        Raises:
            Forbidden: whoever acts may not do it.
            NameTaken: a sibling has the name, or a twin of it.
            InvalidName: the name can't be stored.
            DroppedObject: it was dropped meanwhile.
        """
        require(f"{what.level}.rename", what.slugs, what.name)
        key = {"level": what.level, "id": what.id}
        try:
            with self._database.transaction() as connection:
                before = connection.execute(QUERIES[f"name_of_{what.level}"], key).scalar_one()
                if before == name:
                    return what
                if connection.execute(QUERIES[f"rename_{what.level}"], {**key, "name": name}).first() is None:
                    raise DroppedObject(f"{what.level} {what.name} was dropped meanwhile", safe="nothing was changed")
                connection.execute(QUERIES["keep_old_name"], {**key, "name": before, "actor": by(actor)})
                connection.execute(QUERIES["drop_old_name"], {**key, "name": name})
                names = {"name": before}, {"name": name}
                audit(connection, actor, f"{what.level}.rename", what.name, *names, what.slugs)
        except sqlalchemy.exc.IntegrityError as error:
            raise self.refused(what, name, error) from None
        return TreeObject(what.level, what.ids, (*what.path[:-1], name), what.slugs, what.created_at)

    def refused(self, what: TreeObject, name: str, error: sqlalchemy.exc.IntegrityError) -> Exception:
        """Return the error of a name that an object can't have, from that of the database."""
        if isinstance(error.orig, psycopg.errors.CheckViolation):
            return invalid_name(what.level, name)
        if not isinstance(error.orig, psycopg.errors.UniqueViolation):
            return error
        twin = self._sibling(what, name)
        return _name_taken(what, name, twin["name"] if twin is not None else name)

    def _sibling(self, what: TreeObject, name: str) -> sqlalchemy.RowMapping | None:
        """Return the live sibling that has the name, or a twin of it; it may be the object itself."""
        parent = what.ids[-2] if len(what.ids) > 1 else self._workspace
        rows = self._database.fetch(QUERIES["sibling"], {"level": what.level, "parent": parent, "name": name})
        return rows[0] if rows else None

    def _formers(self, level: str, path: Sequence[str]) -> list[TreeObject]:
        parents, rows = [self._workspace], list[sqlalchemy.RowMapping]()
        for depth, name in enumerate(path):
            rows = self._children(LEVELS[depth], parents, name)
            parents = [row["id"] for row in rows]
        return [object_of(row) for row in rows if row["level"] == level and sees(tuple(row["slugs"]))]

    def _children(self, level: str, parents: Sequence[int], name: str) -> list[sqlalchemy.RowMapping]:
        asked = {"level": level, "parents": list(parents), "name": name}
        return list(self._database.fetch(QUERIES["children"], asked))


def parse_path(level: str, text: str) -> tuple[str, ...]:
    """Read the full name of an object of a level.

    Raises:
        InvalidName: it is none.
    """
    depth = LEVELS.index(level) + 1
    path = parse_levels(text, depth)
    if path is None:
        raise InvalidName(
            f"{text!r} is not a {level}'s full name",
            next_step=f'write {".".join(LEVELS[:depth])}, with double quotes around a name that holds a dot: "b.c"',
            name=text,
        )
    for name in path:
        check_text(name)
    return path


def new_name(what: TreeObject, text: str) -> str:
    """Return the new name of an object's own level, which may be given as its new full name.

    Raises:
        UsageError: the full name is below another parent.
    """
    alone = parse_levels(text, 1) if text.startswith('"') else None
    full = parse_levels(text, len(what.path)) if len(what.path) > 1 else None
    path = full or (*what.path[:-1], *(alone or (text,)))
    if path[:-1] not in (what.path[:-1], what.slugs[:-1]):
        parent = LEVELS[len(what.path) - 2]
        raise UsageError(
            f"{what.level} {what.name} can't be renamed to {text}: it stays in its {parent}, "
            f"{full_name(what.path[:-1])}, and that name is in another one",
            safe="nothing was changed",
            next_step=f"give its new name alone; one that holds dots in double quotes: '\"{text}\"'",
            name=text,
        )
    check_text(path[-1])
    return path[-1]


def gone(level: str, path: Sequence[str], former: TreeObject) -> UnknownObject:
    """Return the error of a name that stands for nothing now: what had it was renamed, or dropped."""
    name, now = full_name(path), former.name
    if former.drop is None:
        return UnknownObject(
            f"unknown {level} {name}: it was renamed, and is {now} now",
            safe="nothing was changed",
            next_step=f"use {now}; for a new {level}: `lakeward {level} create`",
            **{level: name, "renamed_to": now},
        )
    called = "" if now == name else f", as {now},"
    return DroppedObject(
        f"unknown {level} {name}: it was dropped{called} at {moment(former.drop.at)} by {former.drop.by}",
        safe=f"what was in it is untouched, and can come back until {moment(former.drop.until)}",
        next_step=f"`lakeward {level} undrop {shlex.quote(now)}` brings it back",
        **{level: name, "dropped_at": former.drop.at, "undo_until": former.drop.until},
    )


def _name_taken(what: TreeObject, name: str, twin: str) -> NameTaken:
    differs = "" if twin == name else ", and the two differ only in case or Unicode form"
    return NameTaken(
        f"{what.level} {what.name} can't be called {quote_level(name)}: {quote_level(twin)} is there{differs}",
        safe="nothing was changed",
        next_step="choose another name",
        name=name,
        twin=twin,
    )


def taken(level: str, name: str, twin: str, path: str) -> NameTaken:
    """Return the error of a name that can't be given: a sibling has it, or a twin of it."""
    if twin == name:
        return NameTaken(
            f"{level} {quote_level(name)} exists already ({path})",
            next_step=f'Workspace.dataset("{path}") opens it' if level == "dataset" else None,
            dataset=path,
            name=name,
        )
    return NameTaken(
        f"{level} {quote_level(name)} can't be made: {quote_level(twin)} exists, and the two differ only in case or "
        "Unicode form",
        next_step=f"use {quote_level(twin)}, or choose another name",
        dataset=path,
        name=name,
        twin=twin,
    )


def invalid_name(level: str, name: str) -> InvalidName:
    """Return the error of a name that can't be kept as it is."""
    return InvalidName(
        f"{level} name {name!r} can't be stored: it is empty, over 255 bytes, padded, or has a control character",
        next_step="choose another name",
        name=name,
    )


def moment(at: datetime) -> str:
    """Return an instant as messages tell it, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def _unknown(level: str, path: Sequence[str]) -> UnknownObject:
    return UnknownObject(
        f"unknown {level} {full_name(path)}",
        next_step=f"`lakeward {level} list` shows what there is",
        **{level: full_name(path)},
    )


def _is_meant(row: sqlalchemy.RowMapping) -> bool:
    """Say whether a name stands for it now."""
    return row["drop_id"] is None and (row["by_name"] or not row["by_old_name"])


def object_of(row: sqlalchemy.RowMapping) -> TreeObject:
    """Return the object of a row of the view `tree`, joined with its drop."""
    return TreeObject(
        row["level"], tuple(row["ids"]), tuple(row["path"]), tuple(row["slugs"]), row["created_at"], drop_of(row)
    )


def drop_of(row: sqlalchemy.RowMapping) -> Drop | None:
    """Return the drop of a row that is joined with its own, if it has one."""
    if row["drop_id"] is None:
        return None
    return Drop(row["drop_id"], row["dropped_at"], row["dropped_by"], row["undo_until"])
