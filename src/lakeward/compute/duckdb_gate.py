"""The hard gate before DuckDB: what DuckDB's own parser reads in a text must be one SELECT over the given tables.

`sql.py` reads the same text with another parser and gives the better errors. Two parsers can disagree on one text, and
an attacker would look for just that; so the parser that will run it has the last word.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from typing import Any

import duckdb

from lakeward.compute.place import sql_error
from lakeward.compute.policy import refused_function, refused_table_function

_QUERY_NODES = frozenset({"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"})
_ONLY_SELECT = "write one SELECT; datasets are written by the pipeline's outputs"


def check(connection: duckdb.DuckDBPyConnection, sql: str, tables: Collection[str], step: str | None = None) -> None:
    """Refuse everything but one SELECT that reads `tables` and calls harmless functions.

    Raises:
        SqlError: what was found, with its place if DuckDB tells it, and `step` in its fields.
    """
    text = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [sql]).fetchall()[0][0]
    try:
        tree = json.loads(text)
    except RecursionError:
        raise sql_error(
            "the query is nested too deeply to be read", sql, None, next_step="split it into several nodes", step=step
        ) from None
    if tree.get("error"):
        message, position = str(tree.get("error_message", "syntax error")), tree.get("position")
        hint = None if tree.get("error_subtype") == "SYNTAX_ERROR" else _ONLY_SELECT
        raise sql_error(message, sql, _position(sql, position), next_step=hint, step=step)
    statements = tree.get("statements", [])
    if len(statements) != 1:
        raise sql_error(f"there are {len(statements)} statements", sql, None, next_step=_ONLY_SELECT, step=step)
    known = frozenset(name.casefold() for name in tables)
    for node, visible in _walk(statements[0], known):
        reason = _refusal(node, visible)
        if reason is not None:
            raise sql_error(reason, sql, _position(sql, node.get("query_location")), next_step=_ONLY_SELECT, step=step)


def byte_to_character(sql: str, position: int) -> int:
    """Return the character position of a byte position in UTF-8, which is what DuckDB counts."""
    return len(sql.encode()[: max(0, position)].decode(errors="ignore"))


def _refusal(node: dict[str, Any], known: Collection[str]) -> str | None:
    kind, class_ = node.get("type"), node.get("class")
    if class_ == "FUNCTION" and refused_function(str(node.get("function_name", ""))):
        return f"{node['function_name']}() is not allowed"
    if class_ == "PARAMETER":
        return "a parameter ($1, ?, :name) has no value here"
    if class_ is not None or not isinstance(kind, str):
        return None
    if kind == "TABLE_FUNCTION":
        name = str(node.get("function", {}).get("function_name", ""))
        return f"{name}() is not allowed in FROM" if refused_table_function(name) else None
    if kind == "BASE_TABLE":
        parts = [part for part in (node.get("catalog_name"), node.get("schema_name"), node.get("table_name")) if part]
        if len(parts) != 1 or str(parts[0]).casefold() not in known:
            return f"unknown name {'.'.join(map(str, parts))!r}"
    if kind.endswith("_NODE") and kind not in _QUERY_NODES:
        return f"{kind.removesuffix('_NODE').removesuffix('_QUERY')} is not read-only"
    if kind == "SHOW_REF":
        return "SHOW, DESCRIBE and SUMMARIZE describe the engine, not data"
    return None


def _walk(tree: Any, known: frozenset[str]) -> Iterator[tuple[dict[str, Any], frozenset[str]]]:
    """Yield every node with the names of the tables that it may read.

    A name of a WITH stands for that query only where DuckDB sees it so. Anywhere else DuckDB would look for a table or
    a file of that name, and find what is not the user's.
    """
    pending = [(tree, known)]
    while pending:
        value, visible = pending.pop()
        if isinstance(value, list):
            pending.extend((each, visible) for each in value)
        elif isinstance(value, dict):
            if value.get("type") == "RECURSIVE_CTE_NODE":
                visible |= {_name(value.get("cte_name"))}
            for entry in (value.get("cte_map") or {}).get("map", []):
                pending.append((entry.get("value"), visible))
                visible |= {_name(entry.get("key"))}
            yield value, visible
            pending.extend((each, visible) for key, each in value.items() if key != "cte_map")


def _name(value: object) -> str:
    return str(value).casefold()


def _position(sql: str, location: object) -> int | None:
    # "No location" is the largest 64-bit number.
    if isinstance(location, str) and location.isdigit():
        location = int(location)
    if not isinstance(location, int) or not 0 <= location <= len(sql.encode()):
        return None
    return byte_to_character(sql, location)
