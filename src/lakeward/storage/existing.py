"""An Iceberg table that was there before any dataset of ours: what is to be known of it before it comes under one."""

from __future__ import annotations

from dataclasses import dataclass

from lakeward.control.identifiers import TableIdentifier
from lakeward.types.schema import Schema

TAKE = "take"
"""The verb of a dataset's first version that consists of rows which were there."""

IDENTIFY = "identify"
"""The verb of the version that gives such rows their identity columns."""


@dataclass(frozen=True)
class ExistingTable:
    """A table as it was found.

    Args:
        identifier: its name in the catalog.
        schema: its columns, under the field ids that they have; no key.
        snapshot_id: where its `main` is; None: it has no snapshot, and so no rows.
        rows: how many its snapshot says it has; None: it does not say.
        location: where its files are.
        inside: they are in the warehouse.
        owner: the uid of the dataset that it says it is of; None: it is nobody's.
        partitions: how it is partitioned, for people; empty: not at all.
    """

    identifier: TableIdentifier
    schema: Schema
    snapshot_id: int | None
    rows: int | None
    location: str
    inside: bool
    owner: str | None
    partitions: str
