"""Queries of the Postgres rows that two versions differ by, at the cost of those rows.

A row that is seen at the older version v and not at the newer one w was marked between them (`v < until <= w`), which
an index finds; one that is seen at w and not at v was written between them (`v < version <= w`), which another index
finds. If every row was put in place anew between them, by a replace or a copy, all rows of both versions come: a
replace leaves none, and a copy brings rows under a new version whose `origin` says that they are the old ones.
"""

from __future__ import annotations

from psycopg import sql

from lakeward.control.records import ArmVersion
from lakeward.storage.table import TableRef


def gone_rows(table: TableRef, old: ArmVersion, new: ArmVersion) -> sql.Composable:
    """Return a query of the rows that are seen at the older version, among them all that are not at the newer one."""
    until = sql.SQL("until > {} AND until <= {}").format(sql.Literal(old.version), sql.Literal(new.version))
    if new.base_version > old.version:
        until = sql.SQL("(until IS NULL OR until > {})").format(sql.Literal(old.version))
    return _rows(table, old.base_version, old.version, until)


def come_rows(table: TableRef, old: ArmVersion, new: ArmVersion) -> sql.Composable:
    """Return a query of the rows that are seen at the newer version, among them all that are not at the older one."""
    until = sql.SQL("(until IS NULL OR until > {})").format(sql.Literal(new.version))
    return _rows(table, max(new.base_version, old.version + 1), new.version, until)


def _rows(table: TableRef, first: int, last: int, until: sql.Composable) -> sql.Composable:
    return sql.SQL(
        "SELECT * FROM lakeward.dataset_rows WHERE dataset_id = {} AND version BETWEEN {} AND {} AND {}"
    ).format(sql.Literal(table.dataset_id), sql.Literal(first), sql.Literal(last), until)
