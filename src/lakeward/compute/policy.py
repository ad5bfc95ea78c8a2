"""Which functions user SQL may call: the one list, read by the analysis of the text and by the engine's own gate.

The engine is sealed in any case (no files, no network, no extensions, settings locked). This list closes what a seal
does not cover: functions that show the machine, take raw memory addresses, run text as SQL, or only wait.
"""

from __future__ import annotations

TABLE_FUNCTIONS = frozenset(
    {
        "generate_series",
        "generate_subscripts",
        "json_each",
        "json_tree",
        "range",
        "regexp_split_to_table",
        "repeat",
        "repeat_row",
        "string_split_to_table",
        "unnest",
    }
)
"""The table functions that may stand in FROM. An allow-list, because every release of an engine adds readers of files,
runners of SQL and scans of raw addresses (`read_…`, `query`, `arrow_scan`, `json_execute_serialized_sql`)."""

_REFUSED = frozenset(
    {
        "checkpoint",
        "current_catalog",
        "current_connection_id",
        "current_database",
        "current_query",
        "current_query_id",
        "current_role",
        "current_schema",
        "current_schemas",
        "current_setting",
        "current_transaction_id",
        "current_user",
        "currval",
        "force_checkpoint",
        "get_block_size",
        "getenv",
        "getvariable",
        "glob",
        "in_search_path",
        "json_deserialize_sql",
        "json_execute_serialized_sql",
        "json_serialize_plan",
        "json_serialize_sql",
        "nextval",
        "query",
        "query_table",
        "session_user",
        "set_config",
        "setval",
        "sleep_ms",
        "sniff_csv",
        "summary",
        "txid_current",
        "user",
        "version",
        "which_secret",
        "write_log",
    }
)
_REFUSED_PREFIXES = (
    "arrow_scan",
    "delta_",
    "duckdb_",
    "has_",
    "http_",
    "iceberg_",
    "inet_",
    "mysql_",
    "pandas_scan",
    "parquet_",
    "pg_",
    "postgres_",
    "pragma_",
    "python_",
    "read_",
    "sqlite_",
    "st_read",
    "write_",
)
_HARMLESS = frozenset({"pg_typeof", "pg_size_pretty"})


def refused_function(name: str) -> bool:
    """Say whether a function is refused wherever it stands. A function that does not exist is left to the engine."""
    name = name.lower()
    return name not in _HARMLESS and (name in _REFUSED or name.startswith(_REFUSED_PREFIXES))


def refused_table_function(name: str) -> bool:
    """Say whether a function is refused in FROM."""
    return name.lower() not in TABLE_FUNCTIONS
