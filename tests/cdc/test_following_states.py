"""Two that begin at once, logs that are lost or given up, and datasets that others have moved, through the worker."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

import lakeward
from cdc.followed import Shop
from lakeward.errors import Diverged, LakewardError, SchemaError, SourceError
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.wiring import follow_patience
from lakeward.wiring.follow_plan import FollowRequest
from lakeward.wiring.follow_worker import Followed
from support.other_engine import OtherEngine


def at_once(*works: Callable[[], object]) -> list[object]:
    """Do several things at the same time, and return what each returned or raised."""
    barrier, found = threading.Barrier(len(works)), dict.fromkeys(range(len(works)))

    def run(number: int) -> None:
        barrier.wait()
        try:
            found[number] = works[number]()  # type: ignore[assignment]
        except LakewardError as error:
            found[number] = error  # type: ignore[assignment]

    threads = [threading.Thread(target=run, args=[number]) for number in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return list(found.values())


def test_of_two_that_begin_at_once_one_follows(
    shop: Shop, name: str, ws: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_patience, "FIRST_DELAY", 0.01)
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    shop.run(f"INSERT INTO {name} SELECT i, 'a' FROM generate_series(1, 3000) i")
    stop = threading.Event()

    def follow() -> object:
        try:
            return ws.sources.follow(FollowRequest(shop.name, (name,)), stop=stop)
        finally:
            stop.set()

    ended = sorted(at_once(follow, follow), key=lambda each: isinstance(each, LakewardError))
    followed, refused = ended
    # Either has copied the table, and either goes on to follow it.
    assert isinstance(followed, Followed) and followed.copied in (0, 3000)
    assert isinstance(refused, SourceError), refused
    process = f"process {os.getpid()} of"
    assert process in refused.message or "another process begins the log" in refused.message
    shop.run(f"DELETE FROM {name} WHERE id > 2")
    assert shop.follow().changes == 2998 and shop.equals(name)


def test_two_that_begin_with_other_tables_do_not_take_each_others_log(
    shop: Shop, name: str, ws: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follow_patience, "FIRST_DELAY", 0.05)
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v text); CREATE TABLE {name}b (id int PRIMARY KEY, v text)")
    shop.run(f"INSERT INTO {name} SELECT i, 'a' FROM generate_series(1, 3000) i; INSERT INTO {name}b VALUES (1, 'b')")
    ended = at_once(lambda: shop.follow(name), lambda: shop.follow(f"{name}b"))
    assert any(isinstance(each, Followed) for each in ended), ended
    shop.run(f"DELETE FROM {name} WHERE id > 2; DELETE FROM {name}b")
    shop.follow()
    assert shop.equals(name, f"{name}b")
    assert len(set(shop.slots())) == 1
    shop.run(f"DROP TABLE {name}b")


def test_status_tells_how_far_behind_it_is(shop: Shop, name: str, ws: lakeward.Workspace) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v text)")
    shop.follow(name)
    shop.run(f"INSERT INTO {name} SELECT i, repeat('x', 100) FROM generate_series(1, 1000) i")
    state = shop.state
    assert state is not None and "nobody follows now, and it keeps" in state.line
    told = state.to_json()
    assert told["datasets"] == [f"main.{shop.name}.{name}"] and int(str(told["lag_bytes"])) > 100_000


def test_what_was_logged_before_columns_were_added_is_read(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int)")
    shop.follow(name)
    shop.run(f"INSERT INTO {name} VALUES (1, 1)")
    shop.run(f"ALTER TABLE {name} ADD COLUMN more int")
    assert shop.follow().changes == 1
    shop.run(f"INSERT INTO {name} VALUES (2, 2, 2)")
    with pytest.raises(SchemaError, match="new column 'more'"):
        shop.follow()
    assert shop.rows(name) == [(1, 1)]


CHANGES = {
    "DROP COLUMN v": "has lost column 'v'",
    "RENAME COLUMN v TO w": "has lost column 'v', has a new column 'w'",
    "ALTER COLUMN v TYPE bigint": "has bigint in column 'v', which was integer",
}


@pytest.mark.parametrize("mode", ["changes", "append"])
def test_what_was_logged_before_a_column_was_dropped_or_changed_is_read(shop: Shop, name: str, mode: str) -> None:
    tables = [f"{name}{number}" for number in range(len(CHANGES))]
    for table in tables:
        shop.run(f"CREATE TABLE {table} (id int PRIMARY KEY, v int, note text)")
    shop.follow(*tables, mode=mode)
    for table, change in zip(tables, CHANGES, strict=True):
        shop.run(f"INSERT INTO {table} VALUES (1, 10, 'a')")
        shop.run(f"ALTER TABLE {table} {change}")
    assert shop.follow().changes == len(tables)
    for table, said in zip(tables, CHANGES.values(), strict=True):
        assert shop.dataset(table).to_arrow(columns=["id", "v"]).to_pylist() == [{"id": 1, "v": 10}]
        shop.run(f"INSERT INTO {table} (id) VALUES (2)")
        with pytest.raises(SchemaError, match=f"public.{table} {said.replace('integer', 'int')}"):
            shop.follow()
        assert shop.dataset(table).to_arrow(columns=["id"])["id"].to_pylist() == [1]
        # In the same log again, from where it stopped; and given up for the next one.
        with pytest.raises(SchemaError, match=f"public.{table} has"):
            shop.follow()
        shop.ws.sources.unfollow(shop.name, [table])


def test_a_lost_log_ends_the_worker_and_is_begun_anew(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int); INSERT INTO {name} VALUES (1, 1)")
    shop.follow(name)
    assert shop.state is not None and "nobody follows now" in shop.state.line
    [slot] = set(shop.slots())
    shop.run(f"SELECT pg_drop_replication_slot('{slot}')")
    shop.run(f"UPDATE {name} SET v = 2")
    with pytest.raises(SourceError, match="was lost") as refused:
        shop.follow()
    assert refused.value.next_step is not None and "anew" in refused.value.next_step
    assert shop.state is not None and "its log was lost" in shop.state.line and shop.rows(name) == [(1, 1)]
    shop.ws.sources.unfollow(shop.name)
    shop.follow(name)
    assert shop.rows(name) == [(1, 2)] and shop.equals(name)


def test_a_source_that_never_answers_again_is_abandoned(
    shop: Shop, name: str, ws: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY)")
    shop.follow(name)
    [slot] = set(shop.slots())

    def away(*_: object) -> object:
        raise SourceError("it does not answer")

    with monkeypatch.context() as patched:
        patched.setattr(PostgresChangeLog, "state", away)
        with pytest.raises(SourceError, match="does not answer"):
            ws.sources.unfollow(shop.name)
        assert shop.state is not None and shop.state.to_json()["warning"] == "it does not answer: it does not answer"
        left = ws.sources.unfollow(shop.name, abandon=True)
    assert left is not None and left in slot and shop.state is None
    assert set(shop.slots()) == {slot}
    shop.run(f"SELECT pg_drop_replication_slot('{slot}')")
    shop.run(f"DROP PUBLICATION {slot}")


def test_a_diverged_dataset_ends_the_worker_and_it_goes_on_when_it_is_ours_again(shop: Shop, name: str) -> None:
    shop.run(f"CREATE TABLE {name} (id int PRIMARY KEY, v int); INSERT INTO {name} VALUES (1, 1)")
    shop.follow(name, arm="iceberg")
    dataset = shop.dataset(name)
    OtherEngine(shop.ws, dataset).append({"id": 9, "__row_id": 99, "__row_index": 99})
    shop.run(f"INSERT INTO {name} VALUES (2, 2)")
    for _ in range(2):
        with pytest.raises(Diverged):
            shop.follow()
    dataset.restore()
    assert shop.follow().changes == 1 and shop.equals(name)
