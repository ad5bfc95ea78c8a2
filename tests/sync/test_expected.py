"""A sync is judged by what its dataset has to be: one that is refused writes nothing, and its rows come later."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest

import lakeward
from lakeward.errors import ExpectationFailed
from lakeward.wiring.syncing import TableSynced
from sync.conftest import SOURCE


def test_a_refused_sync_saves_no_position(
    ws: lakeward.Workspace,
    shop: psycopg.Connection,
    name: str,
    sync: Callable[..., TableSynced],
    rows: Callable[..., list[tuple[object, ...]]],
) -> None:
    shop.execute(f"CREATE TABLE {name} (id int, note text)")
    shop.execute(f"INSERT INTO {name} VALUES (1, 'a')")
    sync(name, "append", arm="iceberg")
    ws.dataset(f"main.{SOURCE}.{name}").expect(
        [{"row": {"check": "id < 100"}}, {"row_count": {"max": 2, "on_fail": "warn"}}]
    )
    shop.execute(f"INSERT INTO {name} VALUES (2, 'b'), (3, 'c'), (101, 'd')")
    with pytest.raises(ExpectationFailed, match="id < 100"):
        sync(name, "append")
    assert rows(name) == [(1, "a")]
    ws.dataset(f"main.{SOURCE}.{name}").expect([{"row_count": {"max": 2, "on_fail": "warn"}}])
    synced = sync(name, "append")
    assert synced.rows_read == 3 and "row_count" in synced.written.warnings[0]
    assert {id_ for id_, _ in rows(name)} == {1, 2, 3, 101} and len(rows(name)) == 4
