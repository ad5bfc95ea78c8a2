"""Says whether a query calls an aggregate, as the engine's own parser reads it, and the engine's own list names them.

A list of ours would miss those of the next release, and another parser takes many ways to call one (`v.sum()`,
`main.sum(v)`) for something else.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import Any

from lakeward.compute.engine_parser import opened, parsed


@lru_cache(maxsize=4096)
def aggregates(sql: str) -> bool:
    """Say whether a query calls an aggregate anywhere; one that can't be read is taken to."""
    called = _called(sql)
    return called is None or not called.isdisjoint(_names())


@cache
def _names() -> frozenset[str]:
    """Return the names of all aggregates, and of the macros that call one."""
    query = "SELECT lower(function_name), function_type, macro_definition FROM duckdb_functions()"
    with opened() as connection:
        functions = connection.execute(query).fetchall()
    names = {name for name, kind, _ in functions if kind == "aggregate"}
    macros = [(name, _called(f"SELECT {text}")) for name, kind, text in functions if kind == "macro"]
    found = True
    while found:
        more = {name for name, called in macros if called is not None and not called.isdisjoint(names)}
        found = not more <= names
        names |= more
    return frozenset(names)


def _called(sql: str) -> set[str] | None:
    tree = parsed(sql)
    if tree is None:
        return None
    return {str(node["function_name"]).lower() for node in _walk(tree) if "function_name" in node}


def _walk(value: Any) -> Iterator[dict[str, Any]]:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            yield current
            pending.extend(current.values())
        elif isinstance(current, list):
            pending.extend(current)
