"""I03: a sync is killed at each step of the protocol; the next one skips nothing, and repeats nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.syncing import TableSynced
from support.crashes import Driver, unclean
from sync.conftest import SOURCE

POINTS = ("compute", "prepare", "audit", "decide", "decide:committed")


@pytest.fixture(scope="module")
def driver(ws: lakeward.Workspace, sync_url: str, sync_warehouse: Path) -> Iterator[Driver]:
    """Forks the syncs that are to die."""
    with Driver(sync_url, sync_warehouse) as running:
        yield running


@pytest.mark.parametrize(("arm", "mode"), [("postgres", "append"), ("iceberg", "incremental")])
def test_i03_a_killed_sync_skips_nothing_and_repeats_nothing(
    ws: lakeward.Workspace,
    driver: Driver,
    shop: psycopg.Connection,
    name: str,
    sync: Callable[..., TableSynced],
    rows: Callable[..., list[tuple[object, ...]]],
    arm: str,
    mode: str,
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int {'PRIMARY KEY' if mode == 'incremental' else ''}, note text)")
    shop.execute(f"INSERT INTO {name} VALUES (0, 'n')")
    sync(name, mode, arm=arm)
    for number, point in enumerate(POINTS, start=1):
        shop.execute(f"INSERT INTO {name} VALUES ({number}, 'n')")
        case = {"source": SOURCE, "tables": [name], "mode": mode}
        assert driver.run(sync=case, fault=["crash", point, 1]).killed(), point
        stands = point == "decide:committed"
        assert len(rows(name)) == number + stands
        # The next sync tidies up first.
        assert sync(name, mode).rows_read == (0 if stands else 1)
        assert rows(name) == [(each, "n") for each in range(number + 1)]
    assert unclean(ws, [f"main.{SOURCE}.{name}"]) == []


FULL_POINTS = {
    "postgres": (
        ("intent:opened", 2),
        ("compute", 2),
        ("prepare:copy", 1),
        ("prepare:chunk", 2),
        ("audit", 2),
        ("decide", 1),
        ("decide:committed", 1),
    ),
    "iceberg": (
        ("prepare:files", 1),
        ("prepare:deletes", 1),
        ("prepare:committed", 2),
        ("decide", 1),
        ("decide:committed", 1),
        ("publish", 2),
        ("publish:moved", 1),
    ),
}
"""Where a process that syncs two tables is killed, and at which of the times that it comes there."""

STANDS = ("decide:committed", "publish", "publish:moved")


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_i03_a_killed_full_sync_is_there_whole_or_not_at_all(
    ws: lakeward.Workspace,
    driver: Driver,
    shop: psycopg.Connection,
    name: str,
    rows: Callable[..., list[tuple[object, ...]]],
    arm: str,
) -> None:
    """Two tables, prepared side by side: `mirror` of one with a key, `replace` of one without."""
    tables = [f"{name}_keyed", f"{name}_keyless"]
    for table in tables:
        shop.execute(f"CREATE TABLE {table} (id int{' PRIMARY KEY' if table is tables[0] else ''}, note text)")
        shop.execute(f"INSERT INTO {table} SELECT i, 'first' FROM generate_series(1, 40) i")
    request = SyncRequest(SOURCE, tables, arm=arm)
    ws.sources.sync(request)
    names = [f"main.{SOURCE}.{table}" for table in tables]
    for number, (point, occurrence) in enumerate(FULL_POINTS[arm], start=1):
        before = [rows(table) for table in tables]
        for table in tables:
            shop.execute(f"DELETE FROM {table} WHERE id = {number}")
            shop.execute(f"UPDATE {table} SET note = 'at {point}' WHERE id = {number + 1}")
            shop.execute(f"INSERT INTO {table} VALUES ({number + 100}, 'new')")
        there = [sorted(shop.execute(f"SELECT id, note FROM {table}").fetchall()) for table in tables]
        case = {"source": SOURCE, "tables": tables, "mode": "full"}
        assert driver.run(sync=case, fault=["crash", point, occurrence]).killed(), point
        ws.recover()
        assert [sorted(rows(table)) for table in tables] == (there if point in STANDS else list(map(sorted, before)))
        assert unclean(ws, names) == [], point
        synced = ws.sources.sync(request)
        assert [sorted(rows(table)) for table in tables] == there
        # What is the same is no version again, where rows are known by a key.
        assert synced[0].written.committed == (point not in STANDS)
    for table in tables:
        shop.execute(f"DROP TABLE {table}")
