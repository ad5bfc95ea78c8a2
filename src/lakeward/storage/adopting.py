"""Brings an Iceberg table that another engine wrote under a dataset, without copying: its snapshot is version 1."""

from __future__ import annotations

import shlex
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lakeward.access.guard import require, sees
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.names import DatasetName
from lakeward.control.records import Resolution
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ConflictError, NameTaken
from lakeward.storage.arm import StorageArm
from lakeward.storage.existing import TAKE, ExistingTable
from lakeward.storage.identifying import ARM, identify
from lakeward.storage.protocol import WriteProtocol
from lakeward.storage.requests import Output, WriteResult
from lakeward.storage.table import TableRef
from lakeward.types.schema import Schema

WRITER = "dataset.adopt"


@dataclass(frozen=True)
class AdoptionPlan:
    """An existing table, checked, and the dataset that it is to be. Nothing was changed.

    Args:
        name: of the dataset.
        schema: its columns and key.
        table: the table as it was found.
        rows: how many there are.
        add_identity: write the rows anew, with their identity columns, as version 2.
        existing: the dataset, if the table is its own already, or adopting it was cut short; None: there is none.
        stays: the table belongs where it is, whatever the dataset is called.
    """

    name: str
    schema: Schema
    table: ExistingTable
    rows: int
    add_identity: bool
    existing: DatasetRecord | None = None
    stays: bool = False

    @property
    def taken(self) -> bool:
        """Whether the dataset has the table's rows already."""
        return self.existing is not None and self.existing.head_version > 0

    def actions(self) -> list[str]:
        """Return what `run` does, in order."""
        columns = ", ".join(f"{column.name} {column.type}" for column in self.schema.columns)
        key = f"; primary key {', '.join(self.schema.primary_key)}" if self.schema.primary_key else ""
        done = [] if self.existing is not None else [f"create dataset {self.name} on iceberg ({columns}{key})"]
        if not self.taken:
            done += [
                f"set lakeward.dataset and gc.enabled=false in the properties of {self.table.identifier}",
                f"record its snapshot {self.table.snapshot_id} as version 1 ({self.rows:,} rows); no file is touched",
            ]
        if self.add_identity and (self.existing is None or self.existing.unnumbered):
            done.append(f"write {self.rows:,} rows anew with identity columns, as a version of their own")
        return done

    def to_json(self) -> dict[str, Any]:
        """Return it as `--output json` prints it."""
        return {
            "dataset": self.name,
            "table": str(self.table.identifier),
            "location": self.table.location,
            "inside_warehouse": self.table.inside,
            "snapshot": self.table.snapshot_id,
            "rows": self.rows,
            "columns": {column.name: str(column.type) for column in self.schema.columns},
            "primary_key": list(self.schema.primary_key),
            "actions": self.actions(),
        }


class Adopting:
    """Adopts tables, for one workspace."""

    def __init__(self, tree: Tree, arms: Mapping[str, StorageArm], protocol: WriteProtocol) -> None:
        self._tree = tree
        self._arms = arms
        self._protocol = protocol

    def plan(
        self,
        identifier: TableIdentifier,
        name: str | None = None,
        primary_key: Sequence[str] = (),
        *,
        roots: Sequence[str] = (),
        add_identity: bool = False,
        stays: bool = False,
    ) -> AdoptionPlan:
        """Look at a table and at all its rows, and say what adopting it would do. Changes nothing.

        Args:
            identifier: the table's name in the catalog.
            name: of the dataset; None: the table's own, where it has two levels before it, or `main` before one.
            primary_key: its key columns.
            roots: addresses below which its files may be, besides the warehouse.
            add_identity: write the rows anew at once, with their identity columns.
            stays: it is to belong where it is, whatever the dataset is called.

        Raises:
            UnknownObject: there is no such table.
            ConflictError: it is another dataset's.
            NameTaken: the dataset exists.
            ColumnMismatch, SchemaError: a column can't be in a dataset, or the key is none.
            DataError: the rows do not have that key.
            UsageError: its format is not ours, or its files are somewhere else.
        """
        receiver = self._arms[ARM].receiver()
        table = receiver.existing(identifier, roots)
        path = DatasetName.parse(name) if name is not None else _name_of(identifier)
        schema = table.schema.keyed(primary_key, str(path))
        existing = self._tree.find(path)
        if existing is not None and not _is_its_own(existing, table, schema):
            raise NameTaken(
                f"dataset {existing.name} exists already",
                safe="nothing was changed",
                next_step="choose another name: `--as catalog.schema.dataset`",
                dataset=existing.name,
            )
        self._check_nobodys(table, existing)
        place = TableRef(0, uuid.UUID(int=0), str(path), ("", "", ""), schema, identifier)
        rows = receiver.check_rows(place, table.snapshot_id)
        return AdoptionPlan(str(path), schema, table, rows, add_identity, existing, stays)

    def run(self, plan: AdoptionPlan, *, actor: str) -> WriteResult:
        """Carry out a plan, and return the version that the dataset has then. Cut short, it is planned and run again.

        Raises:
            ConflictError: the table has moved on since it was looked at, or has become another dataset's.
        """
        adopted = plan.table.identifier
        record = plan.existing or self._tree.create_dataset(
            plan.name, plan.schema, arm=ARM, actor=actor, adopted=adopted, home=adopted if plan.stays else None
        )
        require(WRITER, record.slugs, record.name)
        result = WriteResult.nothing(record.name, TAKE, record.head_version, record.row_count)
        if not plan.taken:
            resolution = Resolution(actor, WRITER, plan.table.snapshot_id, None, record.slugs)
            taken = Output(record, TAKE, allow_empty=True, resolution=resolution)
            result = self._protocol.run([taken], writer=WRITER, kind="adopt", arm=ARM).transactions[0]
        if plan.add_identity:
            identify(self._tree, self._protocol.run, record, WRITER)
            result = replace(result, version=self._tree.by_id(record.id).head_version)
        return result

    def has_table(self, identifier: TableIdentifier) -> bool:
        """Say whether the catalog has a table of that name, whosever it is."""
        return self._arms[ARM].receiver().has_table(identifier)

    def _check_nobodys(self, table: ExistingTable, existing: DatasetRecord | None) -> None:
        mine = str(existing.uid) if existing is not None else None
        if table.owner is None or table.owner == mine:
            return
        whose = f"a dataset of another workspace, {table.owner}"
        next_step = "if that workspace is gone for good, remove the table's property lakeward.dataset"
        owner = self._tree.by_uid(table.owner)
        if owner is not None and not sees(owner.slugs):
            whose, next_step = "another dataset", "adopt another table"
        elif owner is not None:
            dropped = owner.drop is not None
            whose = f"dataset {owner.name}{', which is dropped' if dropped else ''}"
            next_step = f"lakeward dataset {'undrop' if dropped else 'show'} {shlex.quote(owner.name)}"
        raise ConflictError(
            f"the Iceberg table {table.identifier} belongs to {whose}",
            safe="nothing was changed",
            next_step=next_step,
            table=str(table.identifier),
        )


def _name_of(identifier: TableIdentifier) -> DatasetName:
    levels = ("main", *identifier.parts)[-3:]
    return DatasetName(*levels) if len(levels) == 3 else DatasetName("main", "main", identifier.name)


def _is_its_own(existing: DatasetRecord, table: ExistingTable, schema: Schema) -> bool:
    """Say whether a table is a dataset's own already, or adopting it with the same key was cut short."""
    if existing.identifier != table.identifier or existing.schema.primary_key != schema.primary_key:
        return False
    begun = existing.unnumbered and existing.head_version == 0 and existing.schema == schema
    return begun or table.owner == str(existing.uid)
