"""Field cases I01 to I03: what commits late, ties and failures, for syncs of what changed and of what is new."""

from __future__ import annotations

import random
from collections.abc import Callable

import psycopg
import pytest

import lakeward
from lakeward.errors import SourceError, UsageError, ValueRefused
from lakeward.wiring.syncing import TableSynced

Sync = Callable[..., TableSynced]
Rows = Callable[..., list[tuple[object, ...]]]
Connect = Callable[[], psycopg.Connection]

KEYED, KEYLESS = "id int PRIMARY KEY, note text", "id int, note text"
WAYS = (("incremental", KEYED), ("append", KEYED), ("append", KEYLESS))


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
@pytest.mark.parametrize(("mode", "columns"), WAYS)
def test_i01_what_commits_late_comes_with_the_next_sync_and_nothing_comes_twice(
    shop: psycopg.Connection, connect: Connect, name: str, sync: Sync, rows: Rows, arm: str, mode: str, columns: str
) -> None:
    shop.execute(f"CREATE TABLE {name} ({columns})")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'first')")
    sync(name, mode, arm=arm)
    with connect() as slow:
        slow.execute(f"INSERT INTO {name} VALUES (2, 'slow')")
        slow.execute("SAVEPOINT s")
        shop.execute(f"INSERT INTO {name} VALUES (3, 'fast')")
        # Of a subtransaction: its number is higher than that of the fast one, and the snapshot does not list it.
        slow.execute(f"INSERT INTO {name} VALUES (4, 'slow, too')")
        sync(name, mode)
        assert (2, "slow") not in rows(name)
        slow.commit()
    sync(name, mode)
    assert rows(name) == [(1, "first"), (2, "slow"), (3, "fast"), (4, "slow, too")]
    sync(name, mode)
    last = sync(name, mode)
    assert (last.rows_read, last.written.committed) == (0, False)
    assert len(rows(name)) == 4


def test_what_was_read_over_the_horizon_is_not_read_for_ever(
    shop: psycopg.Connection, connect: Connect, name: str, sync: Sync
) -> None:
    shop.execute(f"CREATE TABLE {name} ({KEYED})")
    with connect() as idle:
        idle.execute(f"LOCK TABLE {name} IN ACCESS SHARE MODE")
        idle.execute("SELECT pg_current_xact_id()")
        shop.execute(f"INSERT INTO {name} SELECT i, 'n' FROM generate_series(1, 10) i")
        assert sync(name, "incremental").rows_read == 10
        again = sync(name, "incremental")
        assert (again.rows_read, again.written.rows_unchanged, again.written.rows_updated) == (10, 10, 0)
    assert sync(name, "incremental").rows_read == 10
    assert sync(name, "incremental").rows_read == 0


@pytest.mark.parametrize(("mode", "columns"), WAYS)
def test_i02_rows_of_the_same_moment_come_once(
    shop: psycopg.Connection, name: str, sync: Sync, rows: Rows, mode: str, columns: str
) -> None:
    shop.execute(f"CREATE TABLE {name} ({columns}, day date)")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a', '2026-01-01'), (2, 'b', '2026-01-01')")
    sync(name, mode)
    shop.execute(f"INSERT INTO {name} VALUES (3, 'c', '2026-01-01'), (4, 'd', '2026-01-02')")
    sync(name, mode)
    assert sync(name, mode).rows_read == 0
    assert [row[0] for row in rows(name)] == [1, 2, 3, 4]


@pytest.mark.parametrize(("mode", "columns"), WAYS)
def test_i03_a_failed_sync_saves_nothing(
    shop: psycopg.Connection, name: str, sync: Sync, rows: Rows, mode: str, columns: str
) -> None:
    shop.execute(f"CREATE TABLE {name} ({columns}, at timestamptz)")
    shop.execute(f"INSERT INTO {name} VALUES (0, 'n', now())")
    sync(name, mode)
    shop.execute(
        f"INSERT INTO {name} SELECT i, 'n', CASE i WHEN 3 THEN 'infinity' ELSE now() END FROM generate_series(1, 4) i"
    )
    with pytest.raises(ValueRefused, match=r"'at'.*infinity"):
        sync(name, mode)
    assert len(rows(name)) == 1
    shop.execute(f"UPDATE {name} SET at = now() WHERE id = 3")
    assert sync(name, mode).written.rows_added == 4
    assert [row[0] for row in rows(name)] == [0, 1, 2, 3, 4]


def test_d01_updates_take_their_place_and_rows_that_are_gone_wait_for_a_full_sync(
    shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    shop.execute(f"CREATE TABLE {name} ({KEYED})")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b'), (3, 'c')")
    sync(name, "incremental")
    shop.execute(f"UPDATE {name} SET id = 1001 WHERE id = 1")
    shop.execute(f"UPDATE {name} SET note = 'B' WHERE id = 2")
    shop.execute(f"DELETE FROM {name} WHERE id = 3")
    sync(name, "incremental")
    assert rows(name) == [(1, "a"), (1001, "a"), (2, "B"), (3, "c")]
    full = sync(name)
    assert (full.written.rows_unchanged, full.written.rows_deleted) == (2, 2)
    assert rows(name) == [(1001, "a"), (2, "B")]


def test_another_table_of_the_name_is_refused_until_it_was_read_whole(
    shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    for again in (False, True):
        shop.execute(f"DROP TABLE IF EXISTS {name}")
        shop.execute(f"CREATE TABLE {name} ({KEYED})")
        shop.execute(f"INSERT INTO {name} VALUES (1, 'a')")
        if again:
            with pytest.raises(SourceError, match="is not the table that was read before"):
                sync(name, "incremental")
            # Its rows are those that are there; what can be gone on from is recorded nevertheless, once.
            assert sync(name).written.committed
            assert not sync(name).written.committed
        sync(name, "incremental")
    shop.execute(f"INSERT INTO {name} VALUES (2, 'b')")
    assert sync(name, "incremental").rows_read == 1
    assert rows(name) == [(1, "a"), (2, "b")]


def test_rows_without_a_key_are_not_appended_where_that_could_double_them(
    shop: psycopg.Connection, name: str, sync: Sync
) -> None:
    shop.execute(f"CREATE TABLE {name} ({KEYLESS})")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    with pytest.raises(UsageError, match="incremental matches rows by a primary key"):
        sync(name, "incremental")
    sync(name)
    with pytest.raises(UsageError, match="can't be appended exactly once: what was read before was not by append"):
        sync(name, "append")
    shop.execute(f"CREATE VIEW {name}_view AS SELECT * FROM {name}")
    with pytest.raises(UsageError, match="does not tell which rows changed"):
        sync(f"{name}_view", "append")
    assert sync(f"{name}_view").rows_read == 1


@pytest.mark.parametrize(("mode", "columns"), WAYS)
def test_any_interleaving_of_writers_and_syncs_ends_in_the_table(
    shop: psycopg.Connection,
    connect: Connect,
    name: str,
    sync: Sync,
    rows: Rows,
    rng: random.Random,
    mode: str,
    columns: str,
) -> None:
    shop.execute(f"CREATE TABLE {name} ({columns})")
    writers = [connect() for _ in range(4)]
    number, synced = 0, 0
    for _ in range(120):
        writer, what = rng.choice(writers), rng.random()
        if what < 0.5:
            number += 1
            writer.execute(f"INSERT INTO {name} VALUES ({number}, 'n{number}')")
        elif what < 0.6:
            writer.execute(f"SAVEPOINT s{number}")
        elif what < 0.85:
            writer.commit()
        elif what < 0.95:
            writer.rollback()
        else:
            synced += sync(name, mode).written.rows_added
    for writer in writers:
        writer.commit()
        writer.close()
    synced += sync(name, mode).written.rows_added
    there = shop.execute(f"SELECT id, note FROM {name}").fetchall()
    assert sorted(rows(name)) == sorted(there)
    assert synced == len(there) > 0


def test_positions_are_read_while_the_dataset_is_held(
    ws: lakeward.Workspace, shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    """Two syncs at once: the second goes on from where the first has got to, not from where both began."""
    shop.execute(f"CREATE TABLE {name} ({KEYLESS})")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    sync(name, "append")
    shop.execute(f"INSERT INTO {name} VALUES (2, 'b')")
    plan_sync, inner = ws.sources.plan_sync, []

    def planned(request: object, progress: object = None) -> object:
        plans = plan_sync(request, progress)  # type: ignore[arg-type]
        if not inner:
            inner.append(None)
            sync(name, "append")
        return plans

    ws.sources.plan_sync = planned  # type: ignore[method-assign, assignment]
    try:
        assert sync(name, "append").rows_read == 0
    finally:
        del ws.sources.plan_sync
    assert rows(name) == [(1, "a"), (2, "b")]
