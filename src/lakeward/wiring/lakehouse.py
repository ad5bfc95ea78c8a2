"""Datasets for a platform that knows Iceberg tables: found, made and moved by the namespace and name of their table.

Any namespace will do. The dataset that is made for a table is called like it: of two levels they are its catalog and
its schema; the levels behind the second one go into the schema's name; where there is one alone, the catalog is `main`.
That name is for people, and can be changed: nothing here goes by it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeward.access.guard import require
from lakeward.control.addresses import Addresses, Commit
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.moves import Relocation
from lakeward.control.names import DatasetName, check_text
from lakeward.control.tree import DatasetRecord
from lakeward.errors import ConflictError, MoveRefused, NameTaken, UnknownObject, UnknownVersion, UsageError
from lakeward.migration.moves.planning import PlannedMove, move_back
from lakeward.migration.moves.sweep import DONE, FAILED, Outcome
from lakeward.storage.adopting import AdoptionPlan
from lakeward.storage.replication import Lag
from lakeward.storage.requests import WriteResult
from lakeward.types.partitioning import declare_partitions
from lakeward.types.schema import Schema
from lakeward.wiring.actor import actor
from lakeward.wiring.dataset import Dataset
from lakeward.wiring.declaring import check_same
from lakeward.wiring.workspace import Workspace

ARM = "iceberg"
MAIN = "main"
"""The catalog of datasets whose table has a namespace of one level."""


@dataclass(frozen=True)
class Declared:
    """What a table is to be, as far as whoever writes to it says.

    Args:
        columns: type texts by column, in order; None: as it is, or as its first rows are.
        primary_key: names of the key columns; None: as it is, and of a new one: none.
        partition_by: how it is partitioned; None: as it is, and a new one: not at all.
        dataset: the full name of the dataset that is made; None: as the table is called.
    """

    columns: Mapping[str, str] | None = None
    primary_key: Sequence[str] | None = None
    partition_by: Sequence[str] | None = None
    dataset: str | None = None


@dataclass(frozen=True)
class Freshness:
    """What an arm holds of a dataset, by the ledger.

    Args:
        version: the newest that it holds and serves; None: none.
        commit: the transaction that made it.
        lag: how far that is behind the dataset's newest.
    """

    version: int | None
    commit: Commit | None
    lag: Lag


class Lakehouse:
    """The tables of one workspace.

    Args:
        workspace: an open one.
    """

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._tree = workspace.tree
        self._addresses = Addresses(workspace.database, workspace.tree.workspace)

    def find(self, table: TableIdentifier) -> Dataset | None:
        """Return the dataset of a table; None: there is none.

        Raises:
            InvalidName: a level of it can't be kept as text.
            UnknownObject: there is one that may not be seen.
        """
        for level in table.parts:
            check_text(level)
        found = self._addresses.at(table)
        if found is None:
            return None
        try:
            return self._workspace.dataset(self._tree.by_id(found).name)
        except UnknownObject:
            # Dropped meanwhile, or not to be seen: by the name of its table, too.
            raise _unknown(table) from None

    def get(self, table: TableIdentifier) -> Dataset:
        """Return the dataset of a table.

        Raises:
            UnknownObject: there is none.
        """
        found = self.find(table)
        if found is None:
            raise _unknown(table)
        return found

    def ensure(self, table: TableIdentifier, declared: Declared, columns: Mapping[str, str]) -> Dataset:
        """Return the dataset of a table, made if there is none: native on Iceberg, its table to be made there.

        Args:
            table: where.
            declared: what it is to be.
            columns: those of its first rows, for what is not declared.

        Raises:
            NameTaken: the dataset's name is another one's, or there is one that is not as declared.
            ConflictError: the catalog has such a table, which belongs to no dataset.
        """
        schema = Schema.declare(declared.columns or columns, declared.primary_key or (), str(table))
        parts = declare_partitions(declared.partition_by or (), schema, str(table))
        if self._workspace.adopting.has_table(table):
            raise ConflictError(
                f"the catalog has a table {table} already, and it belongs to no dataset",
                safe="nothing was changed",
                next_step="register it: then its rows come with it",
                namespace=list(table.namespace),
                table=table.name,
            )
        name = declared.dataset or str(dataset_name(table))
        try:
            self._tree.create_dataset(name, schema, arm=ARM, actor=actor(), partition_by=parts, home=table)
        except (NameTaken, ConflictError) as error:
            # Another request may have made it meanwhile.
            made = self.find(table)
            if made is None:
                error.next_step = "name the dataset otherwise, by the parameter `dataset`"
                raise
            self.check(made, declared)
            return made
        return self._workspace.dataset(name)

    @staticmethod
    def check(dataset: Dataset, declared: Declared) -> None:
        """Refuse what is declared of a table that is not so.

        Raises:
            NameTaken: naming the first difference.
        """
        record = dataset.record
        columns = declared.columns or {column.name: str(column.type) for column in record.schema.columns}
        key = record.schema.primary_key if declared.primary_key is None else declared.primary_key
        schema = Schema.declare(columns, key, record.name)
        parts = declared.partition_by
        check_same(record, schema, None, declare_partitions(parts, schema, record.name) if parts is not None else None)

    # Versions --------------------------------------------------------------------------------------------------------

    def commit(self, dataset: Dataset, version: int) -> Commit | None:
        """Return the transaction that made a version; None: of version 0."""
        return self._addresses.commit(dataset.record.id, version)

    def version_of(self, dataset: Dataset, snapshot_id: int) -> int:
        """Return the version that a snapshot of the table holds.

        Raises:
            UnknownVersion: it holds none that can be read.
        """
        found = self._addresses.version_of(dataset.record.id, snapshot_id)
        if found is None:
            raise UnknownVersion(
                f"dataset {dataset.name}: no readable version is in the snapshot {snapshot_id}",
                next_step="freshness tells the newest, and the history which versions can be read",
                dataset=dataset.name,
                snapshot=snapshot_id,
            )
        return found

    def freshness(self, dataset: Dataset, arm: str) -> Freshness:
        """Return what an arm holds of a dataset. The ledger is asked; no row is read or counted.

        Raises:
            UnknownObject: there is no such arm.
        """
        record = dataset.record
        held = self._workspace.replication.freshness(record)
        if arm not in held:
            raise UnknownObject.among("arm", arm, held, arm=arm)
        version = held[arm]
        commit = self.commit(dataset, version) if version is not None else None
        return Freshness(version, commit, self._workspace.replication.lag(record, arm))

    # Tables of others ------------------------------------------------------------------------------------------------

    def plan_registration(
        self, table: TableIdentifier, name: str | None, primary_key: Sequence[str], *, add_identity: bool
    ) -> AdoptionPlan:
        """Look at a table that is in the catalog, and say what registering it would do. Changes nothing.

        The arguments and errors are those of `Adoption.plan`; its files have to be in the warehouse.
        """
        found = self.find(table)
        called = found.name if found is not None else name or str(dataset_name(table))
        adopting = self._workspace.adopting
        return adopting.plan(table, called, primary_key, add_identity=add_identity, stays=True)

    def register(self, plan: AdoptionPlan) -> WriteResult:
        """Carry it out."""
        return self._workspace.adopting.run(plan)

    # Moves -----------------------------------------------------------------------------------------------------------

    def plan_move(self, dataset: Dataset, to: TableIdentifier | None, *, undo: bool) -> PlannedMove | None:
        """Return where a table would go; None: it is there already, or nothing was moved that could be taken back.

        Args:
            dataset: whose table.
            to: where; None: where it belongs.
            undo: take its newest move back, instead.

        Raises:
            ConflictError: another dataset's table is there, or belongs there.
            MoveRefused: something in the catalog is in the way.
        """
        record, place = dataset.record, self._workspace.moves.places.of(dataset.record.id)
        move = move_back(place) if undo else Relocation(place.identifier, to or record.home)
        if to is not None:
            self._check_free(record, to)
        if move is None or move.source == move.target:
            return None
        if place.version is not None and (reason := self._workspace.moving.obstacle(record, move)) is not None:
            raise MoveRefused(
                f"the table of dataset {record.name} can't be moved to {move.target}: {reason}",
                safe="nothing was changed",
                next_step="choose another name",
                dataset=record.name,
            )
        return PlannedMove(record.name, move)

    def move(self, dataset: Dataset, to: TableIdentifier | None, *, undo: bool) -> Outcome:
        """Move a table, and declare that it belongs there, so that no sweep moves it back. Cut short, it is repeated.

        The arguments and errors are those of `plan_move`.
        """
        record = dataset.record
        require("move.run", record.slugs, record.name)
        planned = self.plan_move(dataset, to, undo=undo)
        before = record.declared_home
        if to is not None:
            self._addresses.set_home(record, to, actor())
        if planned is None or self._workspace.moves.places.of(record.id).version is None:
            return Outcome(record.name, DONE)
        writer = "move.undo" if undo else "move.apply"
        outcome = self._workspace.moves.bring(record, planned.relocation, writer=writer)
        if outcome.outcome == FAILED:
            if to is not None:
                self._addresses.set_home(dataset.record, before, actor())
            kind = ConflictError if outcome.exit_code == ConflictError.exit_code else MoveRefused
            raise kind(outcome.reason or "it failed", safe="the table is where it was", dataset=record.name)
        return outcome

    def _check_free(self, record: DatasetRecord, to: TableIdentifier) -> None:
        for level in to.parts:
            check_text(level)
        other = self._addresses.at(to)
        if other is not None and other != record.id:
            raise ConflictError(
                f"the table of dataset {record.name} can't be moved to {to}: another dataset's is there, or belongs "
                "there",
                safe="nothing was changed",
                next_step="choose another name",
                dataset=record.name,
            )


def _unknown(table: TableIdentifier) -> UnknownObject:
    return UnknownObject(
        f"there is no dataset of the table {table}",
        safe="nothing was changed",
        next_step="ingest makes one, and register takes a table that is in the catalog already",
        namespace=list(table.namespace),
        table=table.name,
    )


def dataset_name(table: TableIdentifier) -> DatasetName:
    """Return what the dataset of a table is called that nobody gave another name.

    Example:
        >>> str(dataset_name(TableIdentifier(("erp", "emea", "north"), "orders")))
        'erp."emea.north".orders'
    """
    if len(table.namespace) == 1:
        return DatasetName(MAIN, table.namespace[0], table.name)
    return DatasetName(table.namespace[0], ".".join(table.namespace[1:]), table.name)


def table_at(namespace: Sequence[str], name: str) -> TableIdentifier:
    """Return a table's name of what a request says.

    Args:
        namespace: its levels; one text of several levels has the character U+001F between them (Iceberg REST catalog
            specification, "namespace" in a path).
        name: of the table.

    Raises:
        UsageError: a level is missing or empty, or has a dot.
    """
    levels = [level for part in namespace for level in part.split("\x1f")]
    if not levels or not all(levels) or not name:
        raise UsageError(
            "a table is named by the levels of its namespace, one at least, and its own name; none is empty",
            safe="nothing was changed",
            namespace=levels,
            table=name,
        )
    if dotted := next((level for level in levels if "." in level), None):
        raise UsageError(
            f"the level {dotted!r} has a dot: catalogs that join levels by dots would take it for two",
            safe="nothing was changed",
            next_step="give its parts as levels of their own",
            namespace=levels,
        )
    return TableIdentifier(tuple(levels), name)
