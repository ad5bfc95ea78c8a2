"""Names and texts inside SQL, quoted for DuckDB or for PostgreSQL.

PostgreSQL's forms have no `%`, so that they can stand in a statement that also has parameters: psycopg would take
a `%` in a column's name for a placeholder.
"""

from __future__ import annotations

from psycopg import sql


def duckdb_name(name: str) -> str:
    """Return `name` as a quoted DuckDB identifier."""
    return '"' + name.replace('"', '""') + '"'


def duckdb_text(text: str) -> str:
    """Return `text` as a DuckDB string literal; a backslash is an ordinary character there."""
    return "'" + text.replace("'", "''") + "'"


def postgres_name(name: str) -> sql.Composable:
    """Return `name` as a quoted PostgreSQL identifier."""
    if "%" not in name:
        return sql.Identifier(name)
    quoted = name.replace("\\", "\\\\").replace('"', '""').replace("%", "\\0025")
    return sql.SQL(f'U&"{quoted}"')


def postgres_text(text: str) -> sql.Composable:
    """Return `text` as a PostgreSQL string literal that does not depend on `standard_conforming_strings`."""
    quoted = text.replace("'", "''")
    if "\\" in text or "%" in text:
        quoted = quoted.replace("\\", "\\\\").replace("%", "\\x25")
        # The blank keeps the E apart from whatever word stands before it.
        return sql.SQL(f" E'{quoted}'")
    return sql.SQL(f"'{quoted}'")
