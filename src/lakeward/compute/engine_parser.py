"""Asks the engine's own parser for the tree of a query, and the engine for its functions."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import duckdb


def parsed(sql: str) -> dict[str, Any] | None:
    """Return the engine's syntax tree of a query, None for one that can't be read."""
    with opened() as connection:
        text = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0][0]
    tree: dict[str, Any] = json.loads(text)
    return None if tree.get("error") else tree


def opened() -> duckdb.DuckDBPyConnection:
    """Return a new connection to an engine that holds nothing; the caller closes it."""
    return _engine().cursor()


@cache
def _engine() -> duckdb.DuckDBPyConnection:
    # Opening one takes a hundred times what parsing does; its cursors are safe to use from any thread.
    return duckdb.connect(config={"threads": 1})
