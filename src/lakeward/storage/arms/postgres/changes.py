"""Queries of the Postgres rows that two versions differ by, at the cost of those rows.

A row that is seen at the older version v and not at the newer one w was marked between them (`v < until <= w`), which
an index finds; one that is seen at w and not at v was written between them (`v < version <= w`), which another index
finds. If every row was put in place anew between them, by a replace or a copy, all rows of both versions come: a
replace leaves none, and a copy brings rows under a new version whose `origin` says that they are the old ones.
"""

from __future__ import annotations

from psycopg import sql

from lakeward.control.records import ArmVersion
from lakeward.storage.arms.postgres.seen import seen_rows
from lakeward.storage.table import TableRef

_MARKED = sql.SQL(
    "SELECT * FROM lakeward.dataset_rows WHERE dataset_id = {dataset_id} AND version BETWEEN {first} AND {old} "
    "AND until > {old} AND until <= {new}"
)


def gone_rows(table: TableRef, old: ArmVersion, new: ArmVersion) -> sql.Composable:
    """Return a query of the rows that are seen at the older version, among them all that are not at the newer one."""
    if new.base_version > old.version:
        return seen_rows(table.dataset_id, old.base_version, old.version)
    return _MARKED.format(
        dataset_id=sql.Literal(table.dataset_id),
        first=sql.Literal(old.base_version),
        old=sql.Literal(old.version),
        new=sql.Literal(new.version),
    )


def come_rows(table: TableRef, old: ArmVersion, new: ArmVersion) -> sql.Composable:
    """Return a query of the rows that are seen at the newer version, among them all that are not at the older one."""
    return seen_rows(table.dataset_id, max(new.base_version, old.version + 1), new.version)
