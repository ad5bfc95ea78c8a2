"""Says whether a query may give something else the next time it runs over the same rows: by chance or by the time."""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

from lakeward.compute.engine_parser import opened, parsed

_TIME = frozenset(
    {
        "age",
        "ago",
        "current_date",
        "current_localtime",
        "current_localtimestamp",
        "current_time",
        "current_timestamp",
        "get_current_time",
        "get_current_timestamp",
        "localtime",
        "localtimestamp",
        "now",
        "today",
        "transaction_timestamp",
    }
)
"""What tells the time. The engine only says which functions are the same within one query: time zones count, too."""

_NOT_BY_CHANCE = frozenset({"error", "stats", "vector_type"})


@lru_cache(maxsize=4096)
def changing(sql: str) -> bool:
    """Say whether a query calls for chance or time, or takes a sample; one that can't be read is taken to."""
    tree = parsed(sql)
    if tree is None:
        return True
    pending: list[Any] = [tree]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            pending.extend(current.values())
            if current.get("sample") or str(current.get("function_name", "")).lower() in _TIME | _chance():
                return True
            names = current.get("column_names")
            if isinstance(names, list) and len(names) == 1 and str(names[0]).lower() in _TIME:
                # `current_date` is written like a column.
                return True
        elif isinstance(current, list):
            pending.extend(current)
    return False


@cache
def _chance() -> frozenset[str]:
    query = "SELECT DISTINCT lower(function_name) FROM duckdb_functions() WHERE stability = 'VOLATILE'"
    with opened() as connection:
        return frozenset(name for (name,) in connection.execute(query).fetchall()) - _NOT_BY_CHANCE
