"""What the server keeps for a log, what it is told, and what happens to a log that others disturb."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from cdc.conftest import with_log
from cdc.reading import Reader
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import ServerFiles
from lakeward.errors import SchemaError, SourceError
from lakeward.sources.allowed import Allowed
from lakeward.sources.change_log import FollowedTable
from lakeward.sources.change_logs import postgres as postgres_log
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.sources.connector import SourceTable
from lakeward.sources.connectors.postgres import PostgresOptions, PostgresSource

Discovered = Callable[[str], SourceTable]


def confirmed(logged: psycopg.Connection, name: str) -> int:
    """Return up to where the server was told that the log is not needed any more."""
    query = "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s"
    [place] = logged.execute(query, [f"lakeward_{name}"]).fetchone() or [None]
    return int(place)


def until(condition: Callable[[], bool]) -> None:
    """Wait for what a server does soon."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_only_what_was_acknowledged_is_forgotten_and_a_busy_reader_keeps_its_connection(
    logged_server: EmbeddedPostgres, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    impatient = f"{logged_server.url}&options=-c%20wal_sender_timeout%3D400ms"
    log = PostgresChangeLog.made(PostgresOptions(url=impatient), Allowed(), name)
    try:
        reader = Reader(log, [discovered(name)])
        stream = log.follow(list(reader.followed.values()), wait_seconds=0.05)
        next(stream)
        # More than the sockets hold, so that the server has to wait for us in the middle of a transaction.
        logged.execute(f"INSERT INTO {name} SELECT i, repeat('x', 1000) FROM generate_series(1, 20000) i")
        changes = next(each for each in stream if each.rows)
        time.sleep(1.2)
        count = sum(batch.num_rows for batch in changes.rows.values())
        while count < 20_000:
            changes = next(stream)
            count += sum(batch.num_rows for batch in changes.rows.values())
        [commit] = {place for batch in changes.rows.values() for place in batch["__commit"].to_pylist()}
        assert confirmed(logged, name) < commit
        state = log.state()
        assert state is not None and state.active and state.lag_bytes > 20_000_000
        while changes.upto is None:
            changes = next(stream)
        log.acknowledge(changes.upto)
        until(lambda: confirmed(logged, name) == changes.upto["place"])
        # While nobody writes to what is followed, the log need not be kept either.
        logged.execute("SELECT pg_logical_emit_message(true, 'other', repeat('x', 100000))")
        place = confirmed(logged, name)
        until(lambda: (next(stream).upto or {})["place"] > place + 100_000)
        stream.close()
    finally:
        log.drop()
        log.close()


def test_of_two_readers_one_is_refused_and_a_drop_waits_for_nobody(
    log: PostgresChangeLog,
    logged_server: EmbeddedPostgres,
    logged: psycopg.Connection,
    name: str,
    discovered: Discovered,
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    followed = list(Reader(log, [discovered(name)]).followed.values())
    stream = log.follow(followed, wait_seconds=0.05)
    next(stream)
    second = PostgresChangeLog.made(PostgresOptions(url=logged_server.url), Allowed(), name)
    with pytest.raises(SourceError, match=f"somebody else reads the log lakeward_{name}"):
        next(second.follow(followed))
    stream.close()
    logged.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    assert next(each for each in second.follow(followed, 0.05) if each.rows).rows
    second.close()
    log.drop()
    log.drop()
    assert log.state() is None
    with pytest.raises(SourceError, match=f"there is no log lakeward_{name}"):
        next(log.follow(followed))


def test_positions_of_another_server_or_log_are_refused(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    table = discovered(name)
    [followed] = Reader(log, [table]).followed.values()
    for other in ({"system": "1"}, {"timeline": 2}, {"place": 1 << 60}):
        with pytest.raises(SourceError, match=f"not the server that public.{name} were followed at"):
            next(log.follow([FollowedTable(table, followed.types, {**followed.after, **other})]))
    log.drop()
    logged.execute(f"INSERT INTO {name} VALUES (1, 'never read')")
    Reader(log, [table])
    with pytest.raises(SourceError, match=f"made after changes of public.{name} that were not read"):
        next(log.follow([followed]))
    log.forget([table.full_name])
    with pytest.raises(SchemaError, match=f"public.{name}: the source has no such table any more that it logs"):
        next(log.follow([followed]))


def test_what_the_log_does_not_tell_is_looked_for(
    log: PostgresChangeLog,
    logged: psycopg.Connection,
    name: str,
    discovered: Discovered,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(postgres_log, "_LOOK_SECONDS", 0)
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    followed = list(Reader(log, [discovered(name)]).followed.values())
    for change in ("SET (publish = 'insert')", f"SET TABLE {name} WHERE (id > 1)"):
        logged.execute(f"ALTER PUBLICATION lakeward_{name} {change}")
        with pytest.raises(SourceError, match=f"somebody changed the publication lakeward_{name}"):
            next(log.follow(followed))
        logged.execute(f"ALTER PUBLICATION lakeward_{name} SET (publish = 'insert, update, delete, truncate')")
    logged.execute(f"ALTER PUBLICATION lakeward_{name} SET TABLE {name}")
    stream = log.follow(followed, wait_seconds=0.05)
    assert next(stream).upto is not None and next(stream).upto is not None
    logged.execute(f"DROP TABLE {name}")
    with pytest.raises(SchemaError, match=f"public.{name}: .* dropped or renamed"):
        next(stream)


def test_a_log_that_the_server_gave_up_is_lost_and_can_be_begun_anew(
    log: PostgresChangeLog, logged: psycopg.Connection, name: str, discovered: Discovered
) -> None:
    logged.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    table = discovered(name)
    reader = Reader(log, [table])
    logged.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    logged.execute("ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    logged.execute("SELECT pg_reload_conf()")
    try:
        for _ in range(3):
            logged.execute("SELECT pg_logical_emit_message(false, 'fill', repeat('x', 1000)), pg_switch_wal()")
        logged.execute("CHECKPOINT")
        state = log.state()
        assert state is not None and state.lost and state.tables == (table.full_name,)
        with pytest.raises(SourceError, match="was lost"):
            next(log.follow(list(reader.followed.values())))
    finally:
        logged.execute("ALTER SYSTEM RESET max_slot_wal_keep_size")
        logged.execute("SELECT pg_reload_conf()")
    reader.add([table])
    assert reader.copies[table.full_name].to_pylist() == [{"id": 1, "v": "a"}]
    logged.execute(f"INSERT INTO {name} VALUES (2, 'b')")
    assert [row["id"] for row in reader.read_to(logged)] == [2]
    # Somebody drops the slot: what is left says so.
    until(lambda: not log.state().active)  # type: ignore[union-attr]
    logged.execute("SELECT pg_drop_replication_slot(%s)", [f"lakeward_{name}"])
    state = log.state()
    assert state is not None and state.lost and state.lag_bytes == 0


def test_a_server_that_crashes_or_stops_ends_the_stream_and_loses_nothing(short_tmp: Path) -> None:
    directory, cache = short_tmp / "pg", short_tmp / "cache"
    with with_log(directory, cache) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("CREATE TABLE t (id int PRIMARY KEY, v text)")
            log = PostgresChangeLog.made(PostgresOptions(url=server.url), Allowed(), "x")
            source = PostgresSource.made(PostgresOptions(url=server.url), Allowed())
            reader = Reader(log, source.discover())
            source.close()
            connection.execute("INSERT INTO t VALUES (1, 'a')")
            stream = log.follow(list(reader.followed.values()), wait_seconds=0.05)
            assert next(each for each in stream if each.rows).upto is not None
        os.kill(int(ServerFiles.of(directory).pid_file.read_text().split()[0]), signal.SIGQUIT)
        with pytest.raises(SourceError, match=r"PostgreSQL at .*: it ended the stream"):
            reader.read_on(stream)
        with pytest.raises(SourceError):
            log.state()
    with EmbeddedPostgres.acquire(directory, cache) as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("INSERT INTO t VALUES (2, 'b')")
            assert [row["id"] for row in reader.read_to(connection)] == [1, 2]
        # A server that is to stop waits until all that it sent is acknowledged.
        stream = log.follow(list(reader.followed.values()), wait_seconds=0.05)
        with ThreadPoolExecutor() as pool:
            reading = pool.submit(reader.read_on, stream)
            server.release()
            with pytest.raises(SourceError):
                reading.result()
        log.close()
