"""The log of changes of a real server: begun without a gap, and read in the order of commits."""

from __future__ import annotations

from collections.abc import Callable

import psycopg

from cdc.reading import Reader
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.sources.connector import SourceTable

Discovered = Callable[[str], SourceTable]


def test_d01_a_stream_of_key_changes_leaves_what_the_source_has(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    reader = Reader(log, [discovered(name)])
    logged.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    logged.execute(f"UPDATE {name} SET id = 1001 WHERE id = 1")
    with logged.transaction():
        logged.execute(f"INSERT INTO {name} VALUES (2001, 'b')")
        logged.execute(f"UPDATE {name} SET id = 2002 WHERE id = 2001")
    logged.execute(f"DELETE FROM {name} WHERE id = 2002")
    rows = reader.read_to(logged)
    assert [(row["__op"], row["id"], row["v"]) for row in rows] == [
        ("insert", 1, "a"),
        ("delete", 1, None),
        ("insert", 1001, "a"),
        ("insert", 2001, "b"),
        ("delete", 2001, None),
        ("insert", 2002, "b"),
        ("delete", 2002, None),
    ]
