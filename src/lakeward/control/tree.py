"""The tree workspace → catalog → schema → dataset: looking names up, and making what is missing."""

from __future__ import annotations

import difflib
import json
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
import sqlalchemy

from lakeward.access.guard import require, sees
from lakeward.access.principal import Place
from lakeward.control.audit import audit
from lakeward.control.db import Database, Queries
from lakeward.control.identifiers import TableIdentifier, declared, home_of, recorded, resolve
from lakeward.control.names import DatasetName, full_name, quote_level
from lakeward.control.objects import (
    LEVELS,
    Drop,
    Objects,
    TreeObject,
    drop_of,
    gone,
    invalid_name,
    parse_path,
    taken,
)
from lakeward.control.routes import ARM_MODES, ARMS_OF, Route, check_arm
from lakeward.errors import ConflictError, NameTaken, UnknownObject
from lakeward.types.schema import Schema

QUERIES = Queries.beside(__file__)


@dataclass(frozen=True)
class DatasetRecord:
    """What the control plane knows of a dataset at one moment."""

    id: int
    uid: uuid.UUID
    path: DatasetName
    slugs: tuple[str, str, str]
    schema: Schema
    route: Route
    head_version: int
    row_count: int
    iceberg_namespace: tuple[str, ...] | None
    iceberg_table: str | None
    next_row_id: int
    next_row_index: int
    status: str
    created_at: datetime
    partition_by: tuple[str, ...] = ()
    drop: Drop | None = None
    """When it was dropped; None: it is live."""
    unnumbered: bool = False
    """Its rows were in its Iceberg table before it came; until the first write they have no identity columns."""
    declared_home: TableIdentifier | None = None
    """Where its Iceberg table was declared to belong; None: under its slugs."""

    @property
    def name(self) -> str:
        """The full name, `catalog.schema.dataset`."""
        return str(self.path)

    @property
    def identifier(self) -> TableIdentifier:
        """Where its Iceberg table is, if it has one."""
        return resolve(self.iceberg_namespace, self.iceberg_table, self.slugs[2])

    @property
    def home(self) -> TableIdentifier:
        """Where its Iceberg table belongs, and is made."""
        return home_of(self.slugs, self.declared_home)

    @property
    def arm(self) -> str:
        """The arm that serves it now: its route's primary."""
        return self.route.primary_arm


class Tree:
    """Names and what they stand for, in one workspace.

    By a name, and in a list, only that is found which whoever acts may see. An id was found before, by somebody who saw
    it, or by the workspace itself: what goes on in a dataset may have to do with others.
    """

    def __init__(self, database: Database, workspace: str = "default") -> None:
        self._database = self.database = database
        rows = database.fetch(QUERIES["workspace"], {"name": workspace})
        # Two first users at once: the insert of the loser returns nothing and its snapshot misses the winner's row.
        rows = rows or database.fetch(QUERIES["workspace"], {"name": workspace})
        self.workspace = self._workspace = int(rows[0]["id"])
        self.objects = Objects(database, self._workspace)

    def datasets(self) -> list[DatasetRecord]:
        """Return every live dataset that is seen, ordered by name bytewise."""
        rows = self._database.fetch(QUERIES["datasets"], {"workspace": self._workspace, "id": None})
        return [_record(row) for row in rows if _seen(row)]

    def find(self, name: str | DatasetName) -> DatasetRecord | None:
        """Return the live dataset of that full name (or of those slugs), or None.

        One that was renamed is not found by a name that it had.

        Raises:
            InvalidName: `name` is not a full name.
        """
        rows = self._database.fetch(QUERIES["find_dataset"], self._looked_up(name))
        return _record(rows[0]) if rows and _seen(rows[0]) else None

    def arm_of(self, name: str) -> str | None:
        """Return the arm that serves the live dataset of that full name; None: there is none."""
        record = self.find(name)
        return record.arm if record is not None else None

    def find_each(self, names: Sequence[str]) -> dict[str, DatasetRecord]:
        """Return those datasets of such names that there are, by the name that was given; see `find`."""
        asked = list(dict.fromkeys(names))
        found = self._database.fetch_each(QUERIES, "find_dataset", [self._looked_up(name) for name in asked])
        return {name: _record(rows[0]) for name, rows in zip(asked, found, strict=True) if rows and _seen(rows[0])}

    def _looked_up(self, name: str | DatasetName) -> dict[str, object]:
        path = DatasetName.parse(name) if isinstance(name, str) else name
        levels = {"catalog": path.catalog, "schema": path.schema, "dataset": path.dataset}
        return {"workspace": self._workspace, **levels}

    def dataset(self, name: str | DatasetName) -> DatasetRecord:
        """Return the dataset of that full name.

        Raises:
            UnknownObject: there is none, with what became of one that had this name, or the nearest names that there
                are.
            InvalidName: `name` is not a full name.
        """
        found = self.find(name)
        if found is None:
            self.check_unused(name)
            names = [record.name for record in self.datasets()]
            near = difflib.get_close_matches(str(name), names, n=3)
            hint = f"did you mean {', '.join(near)}?" if near else "`lakeward dataset list` shows what there is"
            raise UnknownObject(f"unknown dataset {name}", next_step=hint, dataset=str(name))
        return found

    def check_unused(self, name: str | DatasetName) -> None:
        """Refuse a name that a dataset had once: whoever would make one in passing may mean that.

        A dataset that is called so now is no reason, and one that was purged is forgotten.

        Raises:
            UnknownObject: it was renamed, with its name now.
            DroppedObject: it was dropped, with how it comes back.
        """
        path = DatasetName.parse(name) if isinstance(name, str) else name
        levels = (path.catalog, path.schema, path.dataset)
        # In this order: whoever makes it in between has made what is called so now.
        former = self.objects.former("dataset", levels)
        if former is not None and self.find(path) is None:
            raise gone("dataset", levels, former)

    def by_id(self, dataset_id: int, *, dropped: bool = False) -> DatasetRecord:
        """Return the dataset of that id, as it is now.

        Args:
            dataset_id: which one.
            dropped: also if it is dropped.

        Raises:
            DroppedObject: it is dropped, and `dropped` is False.
        """
        rows = self._database.fetch(QUERIES["datasets"], {"workspace": self._workspace, "id": dataset_id})
        if not rows:
            raise UnknownObject(f"unknown dataset id {dataset_id}")
        record = _record(rows[0])
        if record.drop is not None and not dropped:
            raise _dropped(record)
        return record

    def by_uid(self, uid: str) -> DatasetRecord | None:
        """Return the dataset of that uid, dropped or not; None: there is none, or it is no uid."""
        rows = self._database.fetch(QUERIES["by_uid"], {"uid": uid})
        return self.by_id(rows[0]["id"], dropped=True) if rows else None

    def numbered(self, dataset_id: int) -> None:
        """Record that the rows of a dataset that was adopted have their identity columns."""
        self._database.fetch(QUERIES["numbered"], {"id": dataset_id})

    def by_ids(self, dataset_ids: Sequence[int]) -> list[DatasetRecord]:
        """Return the dataset of each id, as they are now, in one question; see `by_id`."""
        asked: list[dict[str, object]] = [{"workspace": self._workspace, "id": each} for each in dataset_ids]
        found = [_record(row) for rows in self._database.fetch_each(QUERIES, "datasets", asked) for row in rows]
        live = {record.id: record for record in found if record.drop is None}
        # What is wrong with one that is not among them is said in one place.
        return [live[id_] if id_ in live else self.by_id(id_) for id_ in dataset_ids]

    def create_catalog(self, name: str, *, actor: str = "api") -> TreeObject:
        """Make a catalog, or return the one of that name.

        Args:
            name: its name.
            actor: who does it, for the audit log.

        Raises:
            NameTaken: a twin of it exists, which differs only in case or Unicode form.
            InvalidName: the name can't be stored.
        """
        return self._create("catalog", parse_path("catalog", name), actor)

    def create_schema(self, name: str, *, actor: str = "api") -> TreeObject:
        """Make a schema, and its catalog where that is missing, or return the one of that full name.

        The arguments and errors are those of `create_catalog`.
        """
        return self._create("schema", parse_path("schema", name), actor)

    def _create(self, level: str, path: tuple[str, ...], actor: str) -> TreeObject:
        with self._database.transaction() as connection:
            found: tuple[int, Place] = (self._workspace, ())
            for depth, each in enumerate(LEVELS[: len(path)]):
                found = self._level(connection, each, found, path[: depth + 1], actor)
        return self.objects.get(level, path)

    def create_dataset(
        self,
        name: str | DatasetName,
        schema: Schema,
        *,
        arm: str = "postgres",
        actor: str = "api",
        partition_by: Sequence[str] = (),
        mode: str | None = None,
        adopted: TableIdentifier | None = None,
        home: TableIdentifier | None = None,
    ) -> DatasetRecord:
        """Make a dataset without rows, and its catalog and schema where they are missing.

        Args:
            name: the full name.
            schema: its columns and key.
            arm: where its rows will live: `postgres` or `iceberg`.
            actor: who does it, for the audit log.
            partition_by: how its Iceberg table is partitioned when that is made, as `declare_partitions` returns it.
            adopted: the Iceberg table that there is already, whose rows come with it; None: there is none.
            mode: instead of `arm`: its mode, as in `ARMS_OF`; one with a mirror gets its first write on both arms.
            home: where its Iceberg table belongs; None: under its slugs.

        Raises:
            Forbidden: whoever acts may not make it.
            NameTaken: a dataset of that name, or of a twin of it, exists.
            InvalidName: the name can't be stored.
            UnknownObject: no such arm.
            ConflictError: another dataset has that table.
        """
        path = DatasetName.parse(name) if isinstance(name, str) else name
        check_arm(arm)
        mode = mode or ARM_MODES[arm]
        primary, mirror = ARMS_OF[mode]
        with self._database.transaction() as connection:
            for table in dict.fromkeys(each for each in (adopted, home) if each is not None):
                self._check_nobodys(connection, table)
            catalog = self._level(connection, "catalog", (self._workspace, ()), (path.catalog,), actor)
            schema_id, place = self._level(connection, "schema", catalog, (path.catalog, path.schema), actor)
            require("dataset.create", place, full_name((path.catalog, path.schema)))
            dataset_id, _ = self._insert(
                connection,
                "dataset",
                schema_id,
                (path.catalog, path.schema, path.dataset),
                {
                    "columns": json.dumps(schema.to_json()),
                    "primary_key": list(schema.primary_key),
                    "partition_by": list(partition_by),
                    "unnumbered": adopted is not None,
                    **recorded(adopted),
                    **declared(home),
                },
            )
            connection.execute(
                QUERIES["add_route"],
                {"dataset_id": dataset_id, "mode": mode, "primary_arm": primary, "mirror_arm": mirror},
            )
            after = {
                "columns": schema.to_json(),
                "primary_key": list(schema.primary_key),
                "arm": primary,
                **({"mode": mode} if mirror else {}),
                **({"partition_by": list(partition_by)} if partition_by else {}),
            }
            audit(connection, actor, "dataset.create", str(path), None, after, place)
        return self.by_id(dataset_id)

    def _check_nobodys(self, connection: sqlalchemy.Connection, table: TableIdentifier) -> None:
        """Refuse a table that a dataset has, or that is being adopted, and keep others from that meanwhile."""
        key = {"workspace": self._workspace}
        connection.execute(QUERIES["lock_workspace"], key)
        asked = {**key, **recorded(table), **declared(table)}
        row = connection.execute(QUERIES["adopter"], asked).one_or_none()
        if row is not None:
            name = full_name(row.path) if sees(tuple(row.slugs)) else None
            raise ConflictError(
                f"the Iceberg table {table} belongs to {f'dataset {name}' if name else 'another dataset'}, or is being "
                "adopted as that",
                safe="nothing was changed",
                next_step=f"lakeward dataset show {name}" if name else None,
                dataset=name,
                table=str(table),
            )

    def _level(
        self,
        connection: sqlalchemy.Connection,
        level: str,
        parent: tuple[int, Place],
        path: tuple[str, ...],
        actor: str,
    ) -> tuple[int, Place]:
        """Return id and place of the catalog or schema, made if it is missing."""
        above, outside = parent
        row = connection.execute(QUERIES[f"find_{level}"], {"parent": above, "name": path[-1]}).one_or_none()
        if row is not None and sees((*outside, row.slug)):
            return int(row.id), (*outside, row.slug)
        # Of one that is not seen the same is told as if it were not there.
        require(f"{level}.create", outside, full_name(path[:-1]) if outside else None)
        made, slug = self._insert(connection, level, above, path, {})
        audit(connection, actor, f"{level}.create", full_name(path), None, {"name": path[-1]}, outside)
        return made, (*outside, slug)

    def _insert(
        self,
        connection: sqlalchemy.Connection,
        level: str,
        parent: int,
        path: tuple[str, ...],
        values: Mapping[str, object],
    ) -> tuple[int, str]:
        name = path[-1]
        # Two tries: a sibling that took our slug in this instant makes the first insert do nothing, and the second
        # sees it and takes the disambiguated slug.
        for _ in range(2):
            try:
                made = connection.execute(QUERIES[f"add_{level}"], {"parent": parent, "name": name, **values}).first()
            except sqlalchemy.exc.IntegrityError as error:
                if not isinstance(error.orig, psycopg.errors.CheckViolation):
                    raise
                raise invalid_name(level, name) from None
            if made is not None:
                return int(made.id), str(made.slug)
            twin = connection.execute(QUERIES["twin"], {"level": level, "parent": parent, "name": name}).one_or_none()
            if twin is not None and twin.name == name and level != "dataset":
                return int(twin.id), str(twin.slugs[-1])
            if twin is not None:
                raise taken(level, name, twin.name, full_name(path))
        raise NameTaken(
            f"{level} {quote_level(name)} can't be made: its slug is taken", dataset=full_name(path), name=name
        )


def _dropped(record: DatasetRecord) -> UnknownObject:
    path = (record.path.catalog, record.path.schema, record.path.dataset)
    return gone(
        "dataset", path, TreeObject("dataset", (record.id,), path, record.slugs, record.created_at, record.drop)
    )


def _seen(row: sqlalchemy.RowMapping) -> bool:
    return sees((row["catalog_slug"], row["schema_slug"], row["slug"]))


def _record(row: sqlalchemy.RowMapping) -> DatasetRecord:
    namespace = row["iceberg_namespace"]
    return DatasetRecord(
        id=row["id"],
        uid=row["uid"],
        path=DatasetName(row["catalog"], row["schema"], row["name"]),
        slugs=(row["catalog_slug"], row["schema_slug"], row["slug"]),
        schema=Schema.from_json(row["columns"], row["primary_key"]),
        route=Route(row["mode"], row["primary_arm"], row["mirror_arm"], row["epoch"]),
        head_version=row["head_version"],
        row_count=row["row_count"],
        iceberg_namespace=tuple(namespace) if namespace is not None else None,
        iceberg_table=row["iceberg_table"],
        unnumbered=row["unnumbered"],
        next_row_id=row["next_row_id"],
        next_row_index=row["next_row_index"],
        status=row["status"],
        created_at=row["created_at"],
        partition_by=tuple(row["partition_by"]),
        drop=drop_of(row),
        declared_home=TableIdentifier(tuple(row["home_namespace"]), row["home_table"]) if row["home_table"] else None,
    )
