"""Many tables in one sync: several at a time, all from one moment, visible together or not at all."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator

import psycopg
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import LakewardError, SourceError, ValueRefused
from lakeward.sources.connectors.postgres import PostgresSnapshot
from lakeward.wiring.sync_plan import SyncRequest
from sync.conftest import SOURCE

NUMBER = 5


@pytest.fixture(scope="module")
def many(shop: psycopg.Connection) -> Iterator[list[str]]:
    """Tables among which one amount is moved to and fro."""
    names = [f"many{number}" for number in range(NUMBER)]
    for name in names:
        shop.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, amount int)")
        shop.execute(f"INSERT INTO {name} SELECT i, 100 FROM generate_series(1, 300) i")
    yield names
    for name in names:
        shop.execute(f"DROP TABLE {name} CASCADE")


def run(ws: lakeward.Workspace, tables: list[str], into: str, arm: str = "postgres") -> dict[str, int]:
    """Sync, and return the rows that were read by table."""
    synced = ws.sources.sync(SyncRequest(SOURCE, tables, into=into, arm=arm))
    return {each.table.partition(".")[2]: each.rows_read for each in synced}


@pytest.fixture
def moving(connect: Callable[[], psycopg.Connection], many: list[str]) -> Iterator[None]:
    """Moves amounts from one table to another all the time, a transaction each."""
    ended = threading.Event()

    def move() -> None:
        with connect() as connection:
            while not ended.is_set():
                for one, other in zip(many, many[1:] + many[:1], strict=True):
                    connection.execute(f"UPDATE {one} SET amount = amount - 1 WHERE id = 1")
                    connection.execute(f"UPDATE {other} SET amount = amount + 1 WHERE id = 1")
                    connection.commit()

    mover = threading.Thread(target=move)
    mover.start()
    yield
    ended.set()
    mover.join()


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_readers_of_several_connections_see_one_moment(
    ws: lakeward.Workspace, many: list[str], moving: None, monkeypatch: pytest.MonkeyPatch, arm: str
) -> None:
    threads: set[str] = set()
    read = PostgresSnapshot.read

    def seen(snapshot: PostgresSnapshot, window: object) -> object:
        threads.add(threading.current_thread().name)
        return read(snapshot, window)  # type: ignore[arg-type]

    monkeypatch.setattr(PostgresSnapshot, "read", seen)
    for _ in range(2):
        assert run(ws, many, f"main.moment_{arm}", arm) == dict.fromkeys(many, 300)
        amounts = [ws.dataset(f"main.moment_{arm}.{name}").to_arrow()["amount"].to_pylist() for name in many]
        assert sum(map(sum, amounts)) == NUMBER * 300 * 100
    assert len(threads) == 2 and all(name.startswith("lakeward-output") for name in threads)


def test_a_table_that_fails_ends_the_others_and_nothing_is_visible(
    ws: lakeward.Workspace, shop: psycopg.Connection, many: list[str]
) -> None:
    """The other table would take for ever: that this test ends is what it tests."""
    shop.execute(
        f"CREATE VIEW endless AS SELECT a.id FROM {many[0]} a, generate_series(1, 100000000000) WHERE a.id < 0"
    )
    shop.execute("CREATE VIEW refused AS SELECT id, timestamptz 'infinity' AS at FROM many1")
    try:
        with pytest.raises(ValueRefused, match=r"'at'.*infinity"):
            run(ws, ["endless", "refused", *many], "main.fails")
    finally:
        shop.execute("DROP VIEW endless, refused")
    assert {ws.tree.dataset(f"main.fails.{name}").head_version for name in ("endless", "refused", *many)} == {0}
    running = (
        "SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND pid <> pg_backend_pid() AND query LIKE %s"
    )
    assert shop.execute(running, ['%FROM "public"%']).fetchone() == (0,)
    assert run(ws, many, "main.fails") == dict.fromkeys(many, 300)


def test_a_write_that_fails_ends_the_reading_of_others(
    ws: lakeward.Workspace, shop: psycopg.Connection, many: list[str]
) -> None:
    shop.execute(
        f"CREATE VIEW endless AS SELECT a.id FROM {many[0]} a, generate_series(1, 100000000000) WHERE a.id < 0"
    )
    shop.execute(f"CREATE VIEW emptied AS SELECT id FROM {many[0]} WHERE current_setting('shop.on', true) IS NULL")
    try:
        run(ws, ["emptied"], "main.empties")
        shop.execute(f"CREATE OR REPLACE VIEW emptied AS SELECT id FROM {many[0]} WHERE false")
        with pytest.raises(LakewardError, match="by zero rows would empty it"):
            run(ws, ["endless", "emptied"], "main.empties")
        assert ws.dataset("main.empties.emptied").to_arrow().num_rows == 300
    finally:
        shop.execute("DROP VIEW endless, emptied")


def test_a_source_that_shares_no_moment_is_read_by_one_connection(
    ws: lakeward.Workspace,
    many: list[str],
    moving: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def refused(snapshot: PostgresSnapshot) -> object:
        raise SourceError("cannot export a snapshot")

    monkeypatch.setattr(PostgresSnapshot, "beside", refused)
    with caplog.at_level(logging.WARNING, "lakeward.syncing"):
        assert run(ws, many, "main.alone") == dict.fromkeys(many, 300)
    assert "1 tables are read at a time, not 2: cannot export a snapshot" in caplog.text
    amounts = [ws.dataset(f"main.alone.{name}").to_arrow()["amount"].to_pylist() for name in many]
    assert sum(map(sum, amounts)) == NUMBER * 300 * 100


def test_progress_is_told_of_all_tables_together(ws: lakeward.Workspace, many: list[str]) -> None:
    told: list[tuple[str, int]] = []
    request = SyncRequest(SOURCE, many, into="main.moment_postgres")
    ws.sources.sync(request, lambda what, rows, total: told.append((what, rows)))
    assert {what for what, _ in told} == {f"syncing {NUMBER} tables"}
    assert [rows for _, rows in told] == [300 * number for number in range(1, NUMBER + 1)]


def test_the_source_keeps_no_connection_of_a_sync(
    ws: lakeward.Workspace, shop: psycopg.Connection, other_server: EmbeddedPostgres, many: list[str]
) -> None:
    run(ws, many, "main.moment_postgres")
    left = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND xact_start < now()"
    assert shop.execute(left).fetchone() == (0,)
