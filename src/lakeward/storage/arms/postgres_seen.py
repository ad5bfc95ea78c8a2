"""The query of the Postgres rows that are seen at a version, which reads past what has been replaced before it.

Rows that nothing has replaced and rows that something has are found by an index each, because most readers want the
head, and its history may be many times as large.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

_SEEN = sql.SQL(
    "SELECT * FROM lakeward.dataset_rows WHERE {conditions} AND until IS NULL "
    "UNION ALL SELECT * FROM lakeward.dataset_rows WHERE {conditions} AND until > {version}"
)


def seen_rows(dataset_id: int, first: int, version: int, more: Sequence[sql.Composable] = ()) -> sql.Composed:
    """Return a query of the rows that are seen at a version.

    Args:
        dataset_id: whose.
        first: rows that an older version than this one wrote are left out.
        version: at which.
        more: further conditions on the table's columns.
    """
    conditions: list[sql.Composable] = [
        sql.SQL("dataset_id = {}").format(sql.Literal(dataset_id)),
        sql.SQL("version BETWEEN {} AND {}").format(sql.Literal(first), sql.Literal(version)),
        *more,
    ]
    return _SEEN.format(conditions=sql.SQL(" AND ").join(conditions), version=sql.Literal(version))
