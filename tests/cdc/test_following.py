"""A followed table's dataset is what the table is, after every commit of the source, each change exactly once."""

from __future__ import annotations

import datetime
import threading
from collections.abc import Callable
from decimal import Decimal

import psycopg
import pyarrow as pa
import pytest
import sqlalchemy

import lakeward
from cdc.followed import Shop
from lakeward.errors import (
    CatalogError,
    ColumnMismatch,
    ConflictError,
    LakewardError,
    SchemaError,
    UsageError,
    ValueRefused,
)
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.storage.facade import Storage
from lakeward.wiring import follow_batch, follow_patience
from lakeward.wiring.follow_plan import FollowRequest
from lakeward.wiring.sync_plan import SyncRequest

ARMS = ("postgres", "iceberg")


def rewound(ws: lakeward.Workspace, shop: Shop, place: int) -> None:
    """Let every dataset of a source believe that the log was read up to a place only."""
    with ws.database.transaction() as connection:
        connection.execute(
            sqlalchemy.text(
                "UPDATE lakeward.sync_positions SET position = jsonb_set(position, '{log,place}', to_jsonb(:place)) "
                "WHERE source = :source"
            ),
            {"place": place, "source": shop.name},
        )


@pytest.mark.parametrize("arm", ARMS)
def test_d01_a_key_that_changes_leaves_no_row_and_the_stream_twice_changes_nothing(
    ws: lakeward.Workspace, shop: Shop, name: str, arm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, note text)")
    shop.follow(name, arm=arm)
    begin = shop.state.tables[0].position["place"]  # type: ignore[union-attr, index]
    monkeypatch.setattr(PostgresChangeLog, "acknowledge", lambda *_: None)
    shop.run(f"INSERT INTO {name} VALUES (1, 'a')")
    shop.follow()
    shop.run(f"UPDATE {name} SET id = 1001")
    shop.follow()
    assert shop.rows(name) == [(1001, "a")]
    shop.run(f"INSERT INTO {name} VALUES (2001, 'b'); UPDATE {name} SET id = 2002 WHERE id = 2001")
    shop.run(f"DELETE FROM {name} WHERE id = 2002")
    shop.follow()
    assert shop.rows(name) == [(1001, "a")] == shop.there(name)
    version = shop.dataset(name).version
    # The source was never told, and sends everything again: each table leaves out what it has.
    assert shop.follow().changes == 0 and shop.dataset(name).version == version
    # Even if nothing were left out, the rows would come to the same.
    rewound(ws, shop, begin)
    assert shop.follow().changes == 7
    assert shop.rows(name) == [(1001, "a")]
    assert shop.equals(name)


def test_d01_a_table_without_a_key_is_refused_or_kept_as_its_changes(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (note text)")
    with pytest.raises(UsageError, match="has no primary key") as caught:
        shop.follow(name)
    assert caught.value.next_step and "REPLICA IDENTITY FULL" in caught.value.next_step
    with pytest.raises(SchemaError, match=name):
        shop.follow(name, mode="append")
    shop.run(f"ALTER TABLE {name} REPLICA IDENTITY FULL")
    shop.run(f"INSERT INTO {name} VALUES ('a'), ('a')")
    shop.follow(name)
    shop.run(f"DELETE FROM {name}")
    shop.follow()
    found = shop.dataset(name).to_arrow().sort_by([("_commit", "ascending"), ("_ordinal", "ascending")]).to_pylist()
    assert [(row["_op"], row["note"]) for row in found if row["_op"] == "copy"] == [("copy", "a")] * 2
    assert [(row["_op"], row["note"]) for row in found if row["_op"] != "copy"] == [("delete", "a")] * 2


@pytest.mark.parametrize("arm", ARMS)
def test_i03_what_fails_in_the_middle_moves_no_position_and_loses_nothing(
    shop: Shop, name: str, arm: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v numeric(8, 2)); CREATE TABLE {name}b (id int PRIMARY KEY)")
    shop.follow(name, f"{name}b", arm=arm)
    shop.run(f"INSERT INTO {name} VALUES (0, 0); INSERT INTO {name}b VALUES (0)")
    shop.run(f"INSERT INTO {name} SELECT i, i FROM generate_series(1, 4) i")
    before = [each.position for each in shop.state.tables]  # type: ignore[union-attr]
    real = follow_batch.to_reader

    def broken(rows: object, schema: object, *, dataset: str) -> object:
        table = rows.read_all()  # type: ignore[attr-defined]
        return real((_third(row, number) for number, row in enumerate(table.to_pylist())), schema, dataset=dataset)

    def _third(row: dict[str, object], number: int) -> dict[str, object]:
        if number == 3:
            raise ValueRefused("row 3 is refused")
        return row

    monkeypatch.setattr(follow_batch, "to_reader", broken)
    with pytest.raises(ValueRefused, match="row 3"):
        shop.follow()
    assert [each.position for each in shop.state.tables] == before  # type: ignore[union-attr]
    assert shop.rows(name) == [] and shop.rows(f"{name}b") == [], "the other table's rows went with it"
    monkeypatch.undo()
    assert shop.follow().changes == 6
    assert [row[0] for row in shop.rows(name)] == [0, 1, 2, 3, 4] and shop.rows(f"{name}b") == [(0,)]
    shop.run(f"DROP TABLE {name}b")


def test_a_value_that_has_no_form_here_stops_with_its_name_and_all_before_it_is_there(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v numeric(8, 2))")
    shop.follow(name)
    shop.run(f"INSERT INTO {name} VALUES (1, 1)")
    shop.run(f"INSERT INTO {name} VALUES (4, 4), (2, 'NaN')")
    shop.run(f"INSERT INTO {name} VALUES (3, 'NaN')")
    for _ in range(2):
        with pytest.raises(ValueRefused, match=r"id=2.*NaN"):
            shop.follow()
        assert shop.rows(name) == [(1, Decimal("1.00"))] and shop.dataset(name).version == 2
    shop.run(f"DELETE FROM {name} WHERE id > 2")
    assert shop.state is not None and shop.state.log is not None and not shop.state.log.lost
    shop.run(f"DELETE FROM {name} WHERE id = 2")
    shop.ws.sources.unfollow(shop.name)
    shop.follow(name)
    assert shop.rows(name) == [(1, Decimal("1.00"))]


@pytest.mark.parametrize("arm", ARMS)
def test_values_that_are_not_sent_are_those_that_were_there(shop: Shop, name: str, arm: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, n int, doc text)")
    shop.run(f"ALTER TABLE {name} ALTER doc SET STORAGE EXTERNAL")
    shop.run(f"INSERT INTO {name} SELECT i, 0, repeat(i::text, 4000) FROM generate_series(1, 6) i")
    shop.follow(name, arm=arm)
    shop.run(f"UPDATE {name} SET n = n + 1 WHERE id <= 2")
    shop.run(f"UPDATE {name} SET id = id + 100 WHERE id IN (2, 3)")
    shop.run(f"UPDATE {name} SET doc = repeat('new', 2000) WHERE id = 4")
    shop.run(f"UPDATE {name} SET id = 104, n = 7 WHERE id = 4")
    shop.run(f"UPDATE {name} SET id = 4, n = 8 WHERE id = 104")
    shop.run(f"DELETE FROM {name} WHERE id = 5; INSERT INTO {name} VALUES (5, 5, NULL)")
    shop.run(f"UPDATE {name} SET n = 6 WHERE id = 5")
    shop.follow()
    assert shop.equals(name)
    # After a truncation nothing of before can be meant.
    shop.run(f"UPDATE {name} SET n = 9; TRUNCATE {name}; INSERT INTO {name} VALUES (1, 1, repeat('y', 4000))")
    shop.run(f"UPDATE {name} SET n = 2")
    shop.follow()
    assert shop.equals(name) and len(shop.rows(name)) == 1
    shop.run(f"TRUNCATE {name}")
    shop.follow()
    assert shop.rows(name) == []


def test_transactions_come_whole_in_the_order_in_which_they_were_committed(
    shop: Shop, name: str, connect: Callable[[], psycopg.Connection]
) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)")
    shop.follow(name)
    with connect() as late:
        late.execute(f"INSERT INTO {name} VALUES (1, 1)")
        shop.run(f"INSERT INTO {name} VALUES (2, 2)")
        shop.follow()
        assert shop.rows(name) == [(2, 2)]
        version = shop.dataset(name).version
        assert shop.follow().batches == 0 and shop.dataset(name).version == version, "nothing new makes no version"
    shop.follow()
    assert shop.rows(name) == [(1, 1), (2, 2)]


def test_one_transaction_larger_than_a_batch_is_one_version(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    shop.follow(name, arm="iceberg")
    shop.run(f"INSERT INTO {name} SELECT i, repeat('x', 900) FROM generate_series(1, 60000) i")
    done = shop.follow()
    assert (done.changes, done.batches) == (60_000, 1)
    assert shop.dataset(name).record.row_count == 60_000 and shop.equals(name)


def test_each_change_as_a_row_in_the_order_of_the_log(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, doc text)")
    shop.run(f"ALTER TABLE {name} ALTER doc SET STORAGE EXTERNAL; INSERT INTO {name} VALUES (0, repeat('d', 4000))")
    shop.follow(name, mode="append", arm="iceberg")
    shop.run(
        f"INSERT INTO {name} VALUES (1, 'a'); UPDATE {name} SET doc = 'b' WHERE id = 1; DELETE FROM {name} WHERE id = 1"
    )
    shop.follow()
    shop.run(f"UPDATE {name} SET id = 7")
    shop.run(f"TRUNCATE {name}")
    shop.follow()
    found = shop.dataset(name).to_arrow(identity=True).sort_by("__row_index").to_pylist()
    assert [(row["_op"], row["id"], row["doc"] and row["doc"][0]) for row in found] == [
        ("copy", 0, "d"),
        ("insert", 1, "a"),
        ("update", 1, "b"),
        ("delete", 1, None),
        ("delete", 0, None),
        ("insert", 7, None),
        ("truncate", None, None),
    ]
    order = [(row["_commit"], row["_ordinal"]) for row in found[1:]]
    assert order == sorted(set(order)) and found[0]["_commit"] is None
    assert found[5]["_unchanged"] == ["doc"]
    assert all(isinstance(row["_committed_at"], datetime.datetime) for row in found[1:])
    with pytest.raises(UsageError, match="--mode append, all of its tables"):
        shop.follow(mode="changes")
    # Begun anew, the history stays.
    shop.ws.sources.unfollow(shop.name)
    shop.follow(name, mode="append")
    assert shop.dataset(name).record.row_count == 7


def test_a_table_that_is_not_what_it_was_stops_and_nothing_is_lost(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)")
    shop.follow(name)
    shop.run(f"INSERT INTO {name} VALUES (1, 1)")
    shop.run(f"ALTER TABLE {name} ADD COLUMN more int")
    shop.run(f"INSERT INTO {name} VALUES (2, 2, 2)")
    with pytest.raises((SchemaError, ColumnMismatch), match="more"):
        shop.follow()
    shop.run(f"ALTER TABLE {name} DROP COLUMN more")
    shop.run(f"INSERT INTO {name} VALUES (3, 3)")
    with pytest.raises(SchemaError, match="more"):
        shop.follow()
    shop.ws.sources.unfollow(shop.name)
    shop.follow(name)
    assert shop.equals(name)


@pytest.mark.parametrize("mode", ["changes", "append"])
def test_a_table_that_changes_while_it_is_followed_stops_when_all_before_is_there(
    shop: Shop, name: str, mode: str
) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int); CREATE TABLE {name}b (id int PRIMARY KEY)")

    def change(said: str) -> None:
        shop.run(f"INSERT INTO {name}b VALUES (1); INSERT INTO {name} VALUES (1, 1)")
        shop.run(f"ALTER TABLE {name} ADD COLUMN more int")
        shop.run(f"INSERT INTO {name}b VALUES (2); INSERT INTO {name} VALUES (2, 2, 2)")

    request = FollowRequest(shop.name, (name, f"{name}b"), mode=mode)
    with pytest.raises(SchemaError, match="new column 'more'"):
        shop.ws.sources.follow(request, say=change)
    for table in (name, f"{name}b"):
        assert shop.dataset(table).to_arrow(columns=["id"])["id"].to_pylist() == [1]
    shop.run(f"DROP TABLE {name}b")


def test_what_somebody_else_has_written_is_noticed_before_it_is_built_on(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int); INSERT INTO {name} VALUES (1, 1)")
    shop.follow(name)
    shop.dataset(name).write(pa.table({"id": [1, 7], "v": [7, 7]}), mode="upsert")
    assert shop.follow().changes == 0
    shop.run(f"UPDATE {name} SET v = 2; INSERT INTO {name} VALUES (7, 8)")
    with pytest.raises(ConflictError, match=r"was written by ingest.api at version 2, and is not what") as refused:
        shop.follow()
    assert refused.value.next_step is not None and f"unfollow {shop.name} --table" in refused.value.next_step
    assert shop.rows(name) == [(1, 7), (7, 7)]
    shop.ws.sources.unfollow(shop.name)
    shop.follow(name)
    # What changes no row is nobody's write.
    shop.dataset(name).write(pa.table({"id": [7], "v": [8]}), mode="upsert")
    shop.dataset(name).copy_to("iceberg")
    shop.run(f"DELETE FROM {name} WHERE id = 7")
    assert shop.follow().changes == 1 and shop.equals(name)


def test_a_write_that_fails_again_and_again_is_waited_for_longer_and_longer_and_then_given_up(
    shop: Shop, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    shop.follow(name)
    shop.run(f"INSERT INTO {name} VALUES (1)")
    said: list[str] = []

    def fails(*_: object, **__: object) -> object:
        assert len(said) <= follow_patience.TRIES, "reading again what can't be written is no progress"
        raise CatalogError("no answer")

    with monkeypatch.context() as patched:
        patched.setattr(follow_patience, "FIRST_DELAY", 0.05)
        patched.setattr(Storage, "build", fails)
        with pytest.raises(CatalogError, match="no answer"):
            shop.follow(say=said.append)
    assert [float(each.split()[-2]) for each in said] == [0.1, 0.1, 0.2, 0.4, 0.8, 1.6]
    assert shop.follow().changes == 1 and shop.rows(name) == [(1,)]


def test_what_is_followed_is_remembered_and_given_up(shop: Shop, name: str, ws: lakeward.Workspace) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY); CREATE TABLE {name}b (id int PRIMARY KEY)")
    shop.follow(name)
    shop.follow(f"{name}b", into=f"main.{shop.name}")
    shop.run(f"INSERT INTO {name} VALUES (1); INSERT INTO {name}b VALUES (1)")
    assert shop.follow().changes == 2
    assert len(set(shop.slots())) == 1
    for refused in (
        lambda: ws.sources.remove(shop.name),
        lambda: ws.sources.sync(SyncRequest(shop.name, [name])),
        lambda: shop.follow(name, key=["id"], mode="append"),
    ):
        with pytest.raises(UsageError):
            refused()
    ws.sources.unfollow(shop.name, [f"{name}b"])
    shop.run(f"INSERT INTO {name} VALUES (2); INSERT INTO {name}b VALUES (2)")
    assert shop.follow().changes == 1 and shop.rows(f"{name}b") == [(1,)]
    ws.sources.unfollow(shop.name)
    assert shop.slots() == [] and shop.state is None
    # A sync goes on from there, and following from a sync.
    ws.sources.sync(SyncRequest(shop.name, [f"{name}b"], "incremental"))
    assert shop.rows(f"{name}b") == [(1,), (2,)]
    shop.follow(f"{name}b")
    assert shop.follow().changes == 0 and shop.rows(f"{name}b") == [(1,), (2,)]
    shop.run(f"DROP TABLE {name}b")
    ws.sources.unfollow(shop.name)
    ws.sources.remove(shop.name)


def test_one_worker_at_a_time_and_the_log_of_others_is_not_kept(
    shop: Shop, name: str, ws: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As many tries as ever, one soon after the other.
    monkeypatch.setattr(follow_patience, "FIRST_DELAY", 0.01)
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    shop.follow(name)
    stop, said = threading.Event(), []
    first = threading.Thread(target=lambda: ws.sources.follow(FollowRequest(shop.name), stop=stop))
    first.start()
    try:
        while not (shop.state and shop.state.log and shop.state.log.active):
            stop.wait(0.01)
        with pytest.raises(LakewardError, match="somebody else reads the log"):
            shop.follow(say=said.append)
        assert said and "tried again" in said[0]
        with pytest.raises(ConflictError, match="is being read"):
            ws.sources.unfollow(shop.name)
        version = shop.dataset(name).version
        shop.run("SELECT pg_logical_emit_message(true, 'other', repeat('x', 1000000))")
        while shop.state.log.lag_bytes > 500_000:
            stop.wait(0.05)
        assert shop.dataset(name).version == version
    finally:
        stop.set()
        first.join()
