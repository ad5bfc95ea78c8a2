"""Full syncs: one moment of several tables, rows that keep their identity, every mode, and what is refused."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

import lakeward
from lakeward.control.flags.registry import WRITERS
from lakeward.errors import ColumnMismatch, ConflictError, EmptyReplace, NameTaken, SchemaError, UsageError
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.syncing import TableSynced
from sync.conftest import SOURCE

Sync = Callable[..., TableSynced]
Rows = Callable[..., list[tuple[object, ...]]]


def test_several_tables_are_read_at_one_moment_and_seen_at_one(
    ws: lakeward.Workspace, shop: psycopg.Connection, name: str, rows: Rows
) -> None:
    """Money is moved between two tables after the first was read: the sync sees it in one of them, and once."""
    other = f"{name}b"
    shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, cents int)")
    shop.execute(f"CREATE TABLE {other} (LIKE {name} INCLUDING ALL)")
    shop.execute(f"INSERT INTO {name} SELECT i, 100 FROM generate_series(1, 50) i")
    moved = []

    def progress(what: str, count: int, total: int | None) -> None:
        if not moved:
            moved.append(
                shop.execute(
                    f"WITH gone AS (DELETE FROM {name} WHERE id <= 20 RETURNING *)"
                    f" INSERT INTO {other} SELECT * FROM gone"
                ).rowcount
            )

    first, second = ws.sources.sync(SyncRequest(SOURCE, [name, other]), progress)
    assert moved == [20]
    assert (first.rows_read, second.rows_read) == (50, 0)
    assert first.written.build_id == second.written.build_id
    ws.sources.sync(SyncRequest(SOURCE, [name, other]))
    assert (len(rows(name)), len(rows(other))) == (30, 20)
    shop.execute(f"DROP TABLE {other}")


@pytest.mark.parametrize("mode", ["dual", "iceberg_dual", "iceberg_native"])
@pytest.mark.parametrize("way", ["full", "incremental", "append"])
def test_each_way_writes_in_each_mode_of_a_dataset(
    ws: lakeward.Workspace, shop: psycopg.Connection, name: str, sync: Sync, mode: str, way: str
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, note text)")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    ws.flags.set(writer=f"sync.{way}", mode=mode)
    try:
        sync(name, way)
    finally:
        ws.flags.clear(writer=f"sync.{way}")
    shop.execute(f"UPDATE {name} SET note = 'B' WHERE id = 2")
    shop.execute(f"INSERT INTO {name} VALUES (3, 'c')")
    sync(name, way)
    dataset = ws.dataset(f"main.{SOURCE}.{name}")
    assert dataset.record.route.mode == mode
    held = {"postgres", "iceberg"} if "dual" in mode else {"iceberg"}
    assert set(ws.storage.verify(dataset.record).digests) == held
    assert len(dataset.to_arrow()) == 3


def test_no_writer_of_syncs_is_held_back() -> None:
    assert {WRITERS[f"sync.{way}"].ceiling for way in ("full", "incremental", "append")} == {"iceberg_native"}


def test_rows_that_stay_the_same_keep_their_identity_and_nothing_new_makes_no_version(
    ws: lakeward.Workspace, shop: psycopg.Connection, name: str, sync: Sync
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, note text)")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    sync(name)
    dataset = ws.dataset(f"main.{SOURCE}.{name}")
    before = dataset.to_arrow(where="id = 1", identity=True).to_pylist()
    assert not sync(name).written.committed
    shop.execute(f"UPDATE {name} SET note = 'B' WHERE id = 2")
    assert sync(name).written.rows_updated == 1
    assert dataset.to_arrow(where="id = 1", identity=True).to_pylist() == before


def test_a_table_that_lost_its_rows_empties_nothing_unasked(
    shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int)")
    assert sync(name).rows_read == 0
    shop.execute(f"INSERT INTO {name} VALUES (1)")
    sync(name)
    shop.execute(f"DELETE FROM {name}")
    with pytest.raises(EmptyReplace):
        sync(name)
    assert rows(name) == [(1,)]
    sync(name, allow_empty=True)
    assert rows(name) == []


def test_a_table_that_does_not_fit_its_dataset_any_more_is_refused(
    shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, note text)")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    sync(name)
    shop.execute(f"ALTER TABLE {name} ADD extra int")
    with pytest.raises(ColumnMismatch, match="new there: extra"):
        sync(name)
    shop.execute(f"ALTER TABLE {name} DROP extra, ALTER id TYPE bigint")
    with pytest.raises(SchemaError, match=r"'id'.*is bigint.*would have long; it has int"):
        sync(name)
    assert rows(name) == [(1, "a")]


def test_rows_of_others_are_never_replaced(
    ws: lakeward.Workspace, shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int, note text)")
    shop.execute(f"CREATE SCHEMA s{name}")
    shop.execute(f"CREATE TABLE s{name}.{name} (id int, note text)")
    ws.create_dataset(f"main.mine.{name}", {"id": "int", "note": "string"}).write([{"id": 7, "note": "mine"}])
    with pytest.raises(NameTaken, match="has rows that no sync wrote"):
        sync(f"public.{name}", into="main.mine")
    assert rows(name, "main.mine") == [(7, "mine")]
    sync(f"public.{name}")
    with pytest.raises(NameTaken, match="is fed by public"):
        sync(f"s{name}.{name}")
    with pytest.raises(UsageError, match="would both become dataset"):
        ws.sources.sync(SyncRequest(SOURCE, [f"public.{name}", f"s{name}.{name}"]))
    shop.execute(f"DROP SCHEMA s{name} CASCADE")


def test_partitioned_tables_are_one_and_are_followed(
    shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, note text) PARTITION BY RANGE (id)")
    shop.execute(f"CREATE TABLE {name}_low PARTITION OF {name} FOR VALUES FROM (0) TO (10)")
    shop.execute(f"CREATE TABLE {name}_high PARTITION OF {name} FOR VALUES FROM (10) TO (20)")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'low'), (11, 'high')")
    sync(name, "incremental")
    shop.execute(f"INSERT INTO {name} VALUES (12, 'new')")
    assert sync(name, "incremental").rows_read == 1
    assert rows(name) == [(1, "low"), (11, "high"), (12, "new")]


def test_what_others_wrote_is_not_taken_away_unasked(
    ws: lakeward.Workspace, shop: psycopg.Connection, name: str, sync: Sync, rows: Rows
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, note text)")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a'), (2, 'b')")
    dataset = ws.dataset(sync(name).written.dataset)
    dataset.write([{"id": 2, "note": "ours"}, {"id": 3, "note": "ours"}], mode="upsert")
    shop.execute(f"INSERT INTO {name} VALUES (4, 'd')")
    with pytest.raises(ConflictError, match=r"changed by ingest\.api at version 2, since its last full sync"):
        sync(name)
    assert dataset.version == 2
    assert sync(name, "incremental").written.rows_added == 1
    with pytest.raises(ConflictError, match=r"changed by ingest\.api at version 2"):
        sync(name)
    sync(name, "append")
    [written] = ws.sources.sync(SyncRequest(SOURCE, [name], overwrite=True))
    assert (written.written.rows_updated, written.written.rows_deleted) == (1, 1)
    assert sorted(rows(name)) == [(1, "a"), (2, "b"), (4, "d")]
    assert not sync(name).written.committed
