"""The query of the Postgres rows that are seen at a version, which reads past what has been replaced before it.

Rows that nothing has replaced and rows that something has are found by an index each, because most readers want the
head, and its history may be many times as large.
"""

from __future__ import annotations

from collections.abc import Sequence

from psycopg import sql

from lakeward.control.records import ArmVersion
from lakeward.storage.filters import Filter
from lakeward.storage.table import TableRef

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


def visible_rows(
    table: TableRef, version: ArmVersion, since: int | None, more: Sequence[sql.Composable] = ()
) -> sql.Composed:
    """Return a query of the rows that are seen at a version, were written after `since`, and meet `more` conditions."""
    # A row that was written after `since` became visible after it, too: the index finds it.
    first = max(version.base_version, 0 if since is None else since + 1)
    origin = [] if since is None else [sql.SQL("(origin IS NULL OR origin > {})").format(sql.Literal(since))]
    return seen_rows(table.dataset_id, first, version.version, [*origin, *more])


def in_spans(where: Filter | None) -> list[sql.Composable]:
    """Return the condition that a row's position is in one of a filter's spans; none if it has no spans."""
    if where is None or not where.spans:
        return []
    spans = [
        sql.SQL("row_index >= {} AND row_index < {}").format(sql.Literal(start), sql.Literal(end))
        for start, end in where.spans
    ]
    return [sql.SQL("({})").format(sql.SQL(" OR ").join(spans))]
