"""I03: a sync is killed at each step of the protocol; the next one skips nothing, and repeats nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import lakeward
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
