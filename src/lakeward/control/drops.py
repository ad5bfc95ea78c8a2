"""Drops and their undoing: what is dropped is unknown to everybody from one instant on, and nothing of it is touched.

Dropping a dataset holds its open slot (see `lakeward.storage.dropping`), so no version is ever committed to one that is
dropped: nobody has a transaction open on it in that instant, and nobody can open one later. What is dropped in one step
is marked in one Postgres transaction, and comes back in one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy

from lakeward.access.guard import require
from lakeward.control.audit import audit, by
from lakeward.control.db import Database, Queries
from lakeward.control.deciding import lease_lost
from lakeward.control.names import full_name
from lakeward.control.objects import LEVELS, Drop, Objects, TreeObject, invalid_name, moment
from lakeward.control.records import OpenTransaction
from lakeward.errors import ConflictError, DroppedObject, NameTaken

QUERIES = Queries.beside(__file__)

DEFAULT_DAYS = 7.0
"""So long can what is dropped come back."""


class Drops:
    """Drops and brings back what is in the tree of one workspace.

    Args:
        database: where it is.
        objects: looks names up.
        days: how long what is dropped from now on can come back.
    """

    def __init__(self, database: Database, objects: Objects, days: float = DEFAULT_DAYS) -> None:
        self._database = database
        self._objects = objects
        self.days = days

    def drop(self, what: TreeObject, opened: Sequence[OpenTransaction], actor: str) -> Drop:
        """Mark an object and all that is live in it as dropped, or nothing of it.

        Args:
            what: a live object.
            opened: the transactions that hold the slots of all its datasets, in this process's hands.
            actor: who does it.

        Raises:
            Forbidden: whoever acts may not do it.
            ConflictError: a dataset was made in it meanwhile, or a flip or backfill of one is under way.
            LeaseLost: a slot was taken over.
        """
        require(f"{what.level}.drop", what.slugs, what.name)
        key = {"depth": len(what.ids), "id": what.id}
        slots = {
            "transactions": [each.id for each in opened],
            "fences": [each.fence for each in opened],
        }
        names = {each.dataset_id: each.dataset for each in opened}
        with self._database.transaction() as connection:
            self._lock(connection, what, list(names))
            live = {row.id for row in connection.execute(QUERIES["below"], key)}
            if live != set(names):
                raise _changed(what)
            self._check_idle(connection, names)
            settled = {row.id for row in connection.execute(QUERIES["settle"], slots)}
            for each in opened:
                if each.id not in settled:
                    raise lease_lost(each)
            connection.execute(QUERIES["release"], slots)
            made = connection.execute(
                QUERIES["begin"], {"level": what.level, "actor": by(actor), "days": self.days}
            ).one()
            if connection.execute(QUERIES["mark"], {**key, "drop_id": made.id}).scalar_one() == 0:
                raise DroppedObject(f"{what.level} {what.name} was dropped meanwhile", safe="it is dropped once")
            after = {"datasets": sorted(names.values()), "undo_until": made.undo_until}
            audit(connection, actor, f"{what.level}.drop", what.name, {"slug": what.slugs[-1]}, after, what.slugs)
        return Drop(made.id, made.dropped_at, by(actor), made.undo_until)

    def undrop(self, what: TreeObject, actor: str, name: str | None = None) -> list[tuple[str, str]]:
        """Bring an object back as it was, with what was dropped in the same step, and its parents if they are dropped.

        Args:
            what: a dropped object.
            actor: who does it.
            name: its new name, if its own was taken meanwhile.

        Returns:
            All that is there again, the parents first, by level and full name.

        Raises:
            Forbidden: whoever acts may not do it.
            NameTaken: something else has its name now, or that of a parent.
            ConflictError: it came back already, or its time is over and it is being removed.
        """
        require(f"{what.level}.undrop", what.slugs, what.name)
        assert what.drop is not None, "only what was dropped comes back"
        key = {"depth": len(what.ids), "id": what.id, "drop_id": what.drop.id}
        back = replace(what, path=(*what.path[:-1], name or what.path[-1]), drop=None)
        returning = what
        try:
            with self._database.transaction() as connection:
                parents = dict(zip(("catalog", "schema"), [*what.ids[:-1], None, None], strict=False))
                together = connection.execute(QUERIES["together"], key)
                self._lock(connection, what, [row.id for row in together if row.level == "dataset"])
                rows = [*connection.execute(QUERIES["dropped_parents"], parents)]
                own = connection.execute(QUERIES["together"], key).all()
                _check_all_there(what, [*rows, *own])
                for level in LEVELS:
                    part = [row for row in (*rows, *own) if row.level == level]
                    if not part:
                        continue
                    returning = _object_of(what, part[0])
                    given = {"renamed": what.id if level == what.level else None, "name": back.path[-1]}
                    connection.execute(QUERIES[f"return_{level}s"], {**given, "ids": [row.id for row in part]})
                paths = [(row.level, full_name((*back.path, *row.path[len(back.path) :]))) for row in own]
                above = [(row.level, full_name(row.path)) for row in rows]
                returned = sorted([*above, *paths], key=lambda each: (LEVELS.index(each[0]), each[1]))
                datasets = [name for level, name in returned if level == "dataset"]
                after = {"name": back.path[-1], "datasets": datasets}
                before = {"dropped_at": what.drop.at}
                audit(connection, actor, f"{what.level}.undrop", what.name, before, after, what.slugs)
        except sqlalchemy.exc.IntegrityError as error:
            raise self._not_back(what, returning, back, error) from None
        return returned

    def _lock(self, connection: sqlalchemy.Connection, what: TreeObject, datasets: Sequence[int]) -> None:
        """Lock an object, its parents and what is in it, so that nothing is made in or taken out of it."""
        schemas = list(what.ids[1:2])
        connection.execute(QUERIES["lock_catalogs"], {"ids": [what.ids[0]]})
        connection.execute(
            QUERIES["lock_schemas"], {"ids": schemas, "catalog": what.id if what.level == "catalog" else None}
        )
        connection.execute(QUERIES["lock_datasets"], {"ids": list(datasets)})

    def check_idle(self, names: Mapping[int, str]) -> None:
        """Raise ConflictError if a flip or backfill of one of these datasets, by id, keeps them from being dropped."""
        with self._database.transaction() as connection:
            self._check_idle(connection, names)

    @staticmethod
    def _check_idle(connection: sqlalchemy.Connection, names: Mapping[int, str]) -> None:
        rows = connection.execute(QUERIES["blockers"], {"ids": list(names)}).all()
        if not rows:
            return
        flips = [names[row.id] for row in rows if row.flipping]
        if flips:
            raise ConflictError(
                f"a flip is under way of {', '.join(flips)}",
                safe="nothing was dropped",
                next_step=f"end it first: `lakeward flip complete {flips[0]}` or `lakeward flip cancel {flips[0]}`",
                datasets=flips,
            )
        busy = [names[row.id] for row in rows]
        raise ConflictError(
            f"a backfill is under way of {', '.join(busy)}",
            safe="nothing was dropped",
            next_step="repeat when it is through; `lakeward ledger list` shows it",
            datasets=busy,
        )

    def _not_back(
        self, what: TreeObject, returning: TreeObject, back: TreeObject, error: sqlalchemy.exc.IntegrityError
    ) -> Exception:
        """Return the error of a name that was taken while its object was dropped."""
        meant = back if returning.id == what.id and returning.level == what.level else returning
        refused = self._objects.refused(meant, meant.path[-1], error)
        if not isinstance(refused, NameTaken):
            return refused if refused is not error else invalid_name(meant.level, meant.path[-1])
        twin = refused.fields["twin"]
        return NameTaken(
            f"{what.level} {what.name} can't come back: another {meant.level} is called {twin} now",
            safe="it stays dropped, and nothing of it was touched",
            next_step=f"`lakeward {meant.level} undrop … --as NEW_NAME` brings it back under another name",
            name=meant.path[-1],
            twin=twin,
        )


def _check_all_there(what: TreeObject, rows: Sequence[sqlalchemy.Row[Any]]) -> None:
    """Refuse to bring back what came back meanwhile, or what is being removed."""
    assert what.drop is not None
    if not any(row.level == what.level and row.id == what.id for row in rows):
        raise ConflictError(
            f"{what.level} {what.name} came back meanwhile, or was purged",
            safe="nothing was changed",
            next_step=f"lakeward {what.level} list --dropped",
        )
    lost = [full_name(row.path) for row in rows if row.lost]
    if lost:
        raise ConflictError(
            f"{what.level} {what.name} can't come back: it could until {moment(what.drop.until)}, and "
            f"{', '.join(lost)} is being removed since",
            safe="nothing was changed",
            next_step=f"lakeward {what.level} list --dropped",
            lost=lost,
        )


def _object_of(what: TreeObject, row: sqlalchemy.Row[Any]) -> TreeObject:
    """Return what an error may have to name: the object, or the parent that comes back with it."""
    depth = LEVELS.index(row.level) + 1
    if depth > len(what.ids):
        return replace(what, level=row.level, ids=(*what.ids, row.id), path=tuple(row.path))
    return replace(what, level=row.level, ids=what.ids[:depth], path=what.path[:depth])


def _changed(what: TreeObject) -> ConflictError:
    return ConflictError(
        f"{what.level} {what.name} is not as it was a moment ago: a dataset was made, moved or dropped in it",
        safe="nothing was dropped",
        next_step="repeat it",
    )
