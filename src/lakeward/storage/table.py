"""What an arm needs to know of a dataset: its columns, and where its rows physically are."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from lakeward.control.identifiers import TableIdentifier, home_of
from lakeward.control.tree import DatasetRecord
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class TableRef:
    """A dataset as an arm sees it."""

    dataset_id: int
    uid: uuid.UUID
    name: str
    slugs: tuple[str, str, str]
    schema: Schema
    identifier: TableIdentifier
    partition_by: tuple[str, ...] = ()
    declared_home: TableIdentifier | None = None

    @property
    def home(self) -> TableIdentifier:
        """Where its table belongs."""
        return home_of(self.slugs, self.declared_home)


def table_ref(record: DatasetRecord) -> TableRef:
    """Return what an arm needs to know of a dataset."""
    return TableRef(
        record.id,
        record.uid,
        record.name,
        record.slugs,
        record.schema,
        record.identifier,
        record.partition_by,
        record.declared_home,
    )
