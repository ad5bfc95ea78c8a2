"""Declares datasets so that repeating it is harmless: what exists as declared is kept, what differs is refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lakeward.control.names import DatasetName
from lakeward.control.routes import ARM_MODES, check_arm, in_words
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import NameTaken
from lakeward.types.logical import LogicalType
from lakeward.types.partitioning import declare_partitions
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class Declaration:
    """A checked declaration, and the dataset of that name if there is one; nothing was changed."""

    name: str
    schema: Schema
    mode: str
    existing: DatasetRecord | None
    partition_by: tuple[str, ...] = ()

    def actions(self) -> list[str]:
        """Return what `carry_out` does, in order."""
        if self.existing is not None:
            return []
        columns = ", ".join(f"{column.name} {column.type}" for column in self.schema.columns)
        key = f"; primary key {', '.join(self.schema.primary_key)}" if self.schema.primary_key else ""
        parts = f"; partitioned by {', '.join(self.partition_by)}" if self.partition_by else ""
        what = f"dataset {self.name} on {in_words(self.mode)} ({columns}{key}{parts})"
        return [f"create {what}, and its catalog and schema if missing"]

    def carry_out(self, tree: Tree, actor: str) -> DatasetRecord:
        """Return the dataset, made if it is missing."""
        if self.existing is not None:
            return self.existing
        return tree.create_dataset(self.name, self.schema, mode=self.mode, actor=actor, partition_by=self.partition_by)


def declare(
    tree: Tree,
    name: str,
    columns: Mapping[str, str | LogicalType],
    primary_key: Sequence[str] = (),
    arm: str | None = None,
    partition_by: Sequence[str] | None = None,
    *,
    mode: str,
) -> Declaration:
    """Check a declaration against what exists.

    Args:
        tree: of the workspace.
        name: the full name.
        columns: type texts by column name, in order.
        primary_key: names of the key columns.
        arm: where a new dataset's rows will live, on it alone; None: as `mode` says, and for one that exists, wherever
            it is.
        partition_by: how its Iceberg table is partitioned; None: not at all, and for one that exists, however it is.
        mode: of a new dataset for which no arm is declared.

    Raises:
        NameTaken: the dataset exists with other columns, another key, other partitions or on another arm.
        SchemaError, InvalidName, UnknownObject: the declaration is wrong.
    """
    check_arm(arm)
    schema = Schema.declare(columns, primary_key, name)
    parts = None if partition_by is None else declare_partitions(partition_by, schema, name)
    existing = tree.find(name)
    if existing is not None:
        check_same(existing, schema, arm, parts)
    if existing is not None:
        mode = existing.route.mode
    elif arm is not None:
        mode = ARM_MODES[arm]
    return Declaration(str(DatasetName.parse(name)), schema, mode, existing, parts or ())


def check_same(
    existing: DatasetRecord, schema: Schema, arm: str | None = None, partition_by: tuple[str, ...] | None = None
) -> None:
    """Refuse a declaration that an existing dataset does not fulfil.

    Raises:
        NameTaken: naming the first difference.
    """
    has = {column.name: str(column.type) for column in existing.schema.columns}
    wanted = {column.name: str(column.type) for column in schema.columns}
    if list(has.items()) != list(wanted.items()):
        differing = [name for name in {**has, **wanted} if has.get(name) != wanted.get(name)]
        if differing:
            name = differing[0]
            difference = (
                f"column {name!r} is {has.get(name, 'missing')} there, and {wanted.get(name, 'missing')} was declared"
            )
        else:
            difference = f"its columns are in another order: {', '.join(has)}"
    elif existing.schema.primary_key != schema.primary_key:
        difference = f"its primary key is {_key(existing.schema)}, and {_key(schema)} was declared"
    elif partition_by is not None and partition_by != existing.partition_by:
        difference = f"it is {_parts(existing.partition_by)}, and {_parts(partition_by)} was declared"
    elif arm is not None and arm != existing.arm:
        difference = f"it is on the {existing.arm} arm, and {arm} was declared"
    else:
        return
    raise NameTaken(
        f"dataset {existing.name} exists already, and is another: {difference}",
        safe="the dataset is unchanged",
        next_step=f"lakeward dataset show {existing.name}",
        dataset=existing.name,
    )


def _key(schema: Schema) -> str:
    return f"({', '.join(schema.primary_key)})" if schema.primary_key else "none"


def _parts(partition_by: tuple[str, ...]) -> str:
    return f"partitioned by {', '.join(partition_by)}" if partition_by else "not partitioned"
