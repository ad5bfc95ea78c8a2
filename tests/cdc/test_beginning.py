"""A log begins without gap or overlap, whatever is written meanwhile; what can't be followed is refused by name."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest

from cdc.reading import Reader
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import SchemaError, SettingsError, SourceError
from lakeward.sources.allowed import Allowed
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.sources.connector import SourceTable
from lakeward.sources.connectors.postgres import PostgresOptions

Discovered = Callable[[str], SourceTable]


def replayed(reader: Reader, table: str, changes: list[dict[str, object]]) -> dict[object, object]:
    """Return the copy with the changes made to it; each has to fit what is there."""
    rows = {row["id"]: row["v"] for row in reader.copies[f"public.{table}"].to_pylist()}
    for row in changes:
        if row["__op"] == "insert":
            assert row["id"] not in rows
        else:
            assert row["id"] in rows
        if row["__op"] == "delete":
            del rows[row["id"]]
        else:
            rows[row["id"]] = row["v"]
    return rows


@contextmanager
def writing(url: str, table: str, seeds: range) -> Iterator[None]:
    """Somebody goes on writing to a table, in transactions that take their time and overlap."""
    ended = threading.Event()

    def write(seed: int) -> None:
        with psycopg.connect(url) as connection:
            number = 0
            while not ended.is_set():
                number += 1
                key = seed * 1_000_000 + number
                connection.execute(f"INSERT INTO {table} VALUES (%s, %s)", [key, number])
                connection.execute(f"UPDATE {table} SET v = v + 1 WHERE id = %s", [key - 1])
                time.sleep(0.002 * seed)
                connection.execute(f"UPDATE {table} SET id = -id WHERE id = %s", [key - 2])
                connection.execute(f"DELETE FROM {table} WHERE id = %s", [-(key - 3)])
                if number % 7:
                    connection.commit()
                else:
                    connection.rollback()

    writers = [threading.Thread(target=write, args=(seed,)) for seed in seeds]
    for writer in writers:
        writer.start()
    try:
        yield
    finally:
        ended.set()
        for writer in writers:
            writer.join()


def test_beginning_beside_four_writers_and_adding_tables_later_leaves_no_gap(
    log: PostgresChangeLog,
    logged: psycopg.Connection,
    logged_server: EmbeddedPostgres,
    name: str,
    discovered: Discovered,
) -> None:
    later = f"{name}_later"
    for table in (name, later):
        logged.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, v int)")
    try:
        with writing(logged_server.url, name, range(1, 3)), writing(logged_server.url, later, range(3, 5)):
            time.sleep(0.1)
            reader = Reader(log, [discovered(name)])
            rows = reader.read_to(logged)
            # A transaction that wrote before the table joined, and ends after it did.
            with psycopg.connect(logged_server.url) as slow:
                slow.execute(f"INSERT INTO {later} VALUES (-1, 0)")
                threading.Timer(0.3, slow.commit).start()
                reader.add([discovered(later)])
            assert reader.copies[f"public.{later}"].num_rows > 1
            time.sleep(0.1)
        first, second = (reader.followed[f"public.{table}"].after for table in (name, later))
        assert log.reaches(second, first) and not log.reaches(first, second)
        # A reader that stops and goes on sees each change once.
        rows += reader.read_to(logged)
        for table in (name, later):
            mine = [row for row in rows if row["table"] == f"public.{table}"]
            assert len(mine) > 5
            there = dict(logged.execute(f"SELECT id, v FROM {table}").fetchall())
            assert replayed(reader, table, mine) == there
        state = log.state()
        assert state is not None and state.tables == (f"public.{name}", f"public.{later}")
    finally:
        logged.execute(f"DROP TABLE {later}")


def test_beginning_again_with_a_table_that_is_logged_gives_a_later_moment(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)")
    reader = Reader(log, [discovered(name)])
    before = reader.followed[f"public.{name}"].after
    logged.execute(f"INSERT INTO {name} VALUES (1, 1)")
    reader.add([discovered(name)])
    logged.execute(f"INSERT INTO {name} VALUES (2, 2)")
    assert reader.copies[f"public.{name}"].to_pylist() == [{"id": 1, "v": 1}]
    assert [row["id"] for row in reader.read_to(logged, acknowledge=False)] == [2]
    assert log.reaches(reader.followed[f"public.{name}"].after, before)
    found = logged.execute("SELECT slot_name FROM pg_replication_slots").fetchall()
    assert found == [(f"lakeward_{name}",)]


def test_what_fails_in_the_middle_leaves_nothing_at_the_source(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    with pytest.raises(KeyError), log.begin([discovered(name)]):
        raise KeyError
    assert log.state() is None
    logged.execute(f"CREATE TABLE {name}_b (id int PRIMARY KEY)")
    try:
        reader = Reader(log, [discovered(name)])
        with pytest.raises(KeyError), log.begin([discovered(f"{name}_b")]):
            raise KeyError
        state = log.state()
        assert state is not None and state.tables == (f"public.{name}",) and not state.lost
        logged.execute(f"INSERT INTO {name} VALUES (1)")
        assert [row["id"] for row in reader.read_to(logged)] == [1]
    finally:
        logged.execute(f"DROP TABLE {name}_b")


UNFIT = {
    "CREATE TABLE {0} (id int)": "does not log which row was changed",
    "CREATE TABLE {0} (id int PRIMARY KEY); ALTER TABLE {0} REPLICA IDENTITY NOTHING": "does not log id of",
    "CREATE TABLE {0} (id int PRIMARY KEY, k int NOT NULL UNIQUE);"
    "ALTER TABLE {0} REPLICA IDENTITY USING INDEX {0}_k_key": "does not log id of",
    "CREATE UNLOGGED TABLE {0} (id int PRIMARY KEY)": "is not logged",
    "CREATE TABLE {0} (id int PRIMARY KEY); CREATE TABLE {0}_child () INHERITS ({0})": "tables that inherit from it",
    "CREATE TABLE {0} (id int PRIMARY KEY, g int GENERATED ALWAYS AS (id * 2) VIRTUAL)": "generated columns.* g",
    "CREATE VIEW {0}_v AS SELECT 1 AS id; CREATE TABLE {0} (id int)": "is no table",
    "CREATE TABLE {0} (id int) PARTITION BY LIST (id); CREATE TABLE {0}_a PARTITION OF {0} DEFAULT": "its partition t",
}


@pytest.mark.parametrize("made", UNFIT)
def test_a_table_whose_changes_can_not_be_followed_is_refused_by_name(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered, made: str
) -> None:
    logged.execute(made.format(name))
    table = f"{name}_v" if "VIEW" in made else name
    with pytest.raises(SchemaError, match=f"public.{table} .*{UNFIT[made]}"):
        Reader(log, [discovered(table)])
    assert log.state() is None
    logged.execute(f"DROP VIEW IF EXISTS {name}_v")


def test_who_may_not_is_told_what_to_grant(
    logged: psycopg.Connection, logged_server: EmbeddedPostgres, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    logged.execute(f"CREATE ROLE {name}_user LOGIN PASSWORD 'se cr/et'")
    url = logged_server.url.replace("postgres@", f"{name}_user:se%20cr%2Fet@", 1)
    log = PostgresChangeLog.made(PostgresOptions(url=url), Allowed(), name)
    try:
        logged.execute(f"GRANT SELECT ON {name} TO {name}_user")
        with pytest.raises(
            SourceError, match=rf"denied[\s\S]*GRANT CREATE ON DATABASE lakeward TO {name}_user"
        ) as caught:
            Reader(log, [discovered(name)])
        logged.execute(f"ALTER TABLE {name} OWNER TO {name}_user")
        logged.execute(f"GRANT CREATE ON DATABASE lakeward TO {name}_user")
        with pytest.raises(SourceError, match=f"ALTER ROLE {name}_user REPLICATION") as again:
            Reader(log, [discovered(name)])
        assert "se cr" not in f"{caught.value} {again.value}" and log.state() is None
        logged.execute(f"ALTER ROLE {name}_user REPLICATION")
        reader = Reader(log, [discovered(name)])
        logged.execute(f"INSERT INTO {name} VALUES (1)")
        assert [row["id"] for row in reader.read_to(logged)] == [1]
    finally:
        log.drop()
        log.close()
        logged.execute(f"DROP OWNED BY {name}_user CASCADE")
        logged.execute(f"DROP ROLE {name}_user")


def test_a_server_without_a_log_says_what_to_set(postgres: EmbeddedPostgres) -> None:
    log = PostgresChangeLog.made(PostgresOptions(url=postgres.url), Allowed(), "any")
    with pytest.raises(
        SourceError, match=r"wal_level is replica, and has to be logical[\s\S]*ALTER SYSTEM SET wal_level"
    ):
        with log.begin([]):
            raise AssertionError
    assert log.state() is None
    log.close()


def test_all_slots_taken_says_what_to_do(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    slots = [f"{name}_{number}" for number in range(10)]
    try:
        for slot in slots:
            logged.execute("SELECT pg_create_physical_replication_slot(%s)", [slot])
        with pytest.raises(SourceError, match=r"all 10 replication slots are taken[\s\S]*max_replication_slots"):
            Reader(log, [discovered(name)])
    finally:
        for slot in slots:
            logged.execute("SELECT pg_drop_replication_slot(%s)", [slot])


def test_a_label_that_no_slot_can_have_is_refused(logged_server: EmbeddedPostgres) -> None:
    for label in ("", "A", "a-b", "a" * 41):
        with pytest.raises(SettingsError, match="slot's name"):
            PostgresChangeLog.made(PostgresOptions(url=logged_server.url), Allowed(), label)
