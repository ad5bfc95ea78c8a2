"""Runs: each table for itself, and a run that failed or was killed goes on with the tables that are not done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.errors import ValueRefused
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.syncing import TableSynced
from support.crashes import Driver
from sync.conftest import SOURCE

TABLES = ["run_a", "run_b", "run_c"]

Rows = Callable[..., list[tuple[object, ...]]]


@pytest.fixture
def three(shop: psycopg.Connection) -> Iterator[None]:
    for table in TABLES:
        shop.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, at timestamptz)")
        shop.execute(f"INSERT INTO {table} VALUES (1, now())")
    yield
    for table in TABLES:
        shop.execute(f"DROP TABLE {table}")


def run(ws: lakeward.Workspace, name: str, into: str, mode: str = "full") -> dict[str, tuple[int, bool]]:
    """Sync as a run, and return rows and whether it was done before, by table."""
    synced: list[TableSynced] = ws.sources.sync(SyncRequest(SOURCE, TABLES, mode, into=into, run=name))
    return {each.table.partition(".")[2]: (each.rows_read, each.written.repeated) for each in synced}


def test_a_table_that_fails_keeps_no_other_back_and_is_all_that_is_repeated(
    ws: lakeward.Workspace, three: None, shop: psycopg.Connection, rows: Rows
) -> None:
    shop.execute("INSERT INTO run_b VALUES (2, 'infinity')")
    with pytest.raises(ValueRefused, match="infinity") as raised:
        run(ws, "monday", "main.runs")
    assert "2 of 3 tables are done" in "\n".join(raised.value.__notes__)
    assert raised.value.fields["failed"] == ["public.run_b"]
    assert [len(rows(table, "main.runs")) for table in TABLES] == [1, 0, 1]
    shop.execute("DELETE FROM run_b WHERE id = 2")
    shop.execute("INSERT INTO run_a VALUES (9, now())")
    assert run(ws, "monday", "main.runs") == {"run_a": (1, True), "run_b": (1, False), "run_c": (1, True)}
    assert [len(rows(table, "main.runs")) for table in TABLES] == [1, 1, 1]
    # A table without anything new is done as well; and so is a mode of its own.
    assert run(ws, "tuesday", "main.runs") == {"run_a": (2, False), "run_b": (1, False), "run_c": (1, False)}
    assert run(ws, "tuesday", "main.runs") == {"run_a": (2, True), "run_b": (1, True), "run_c": (1, True)}
    assert {done for _, done in run(ws, "tuesday", "main.runs", "incremental").values()} == {False}


def test_a_run_that_was_killed_goes_on(
    ws: lakeward.Workspace, three: None, sync_url: str, sync_warehouse: Path, rows: Rows
) -> None:
    case = {"source": SOURCE, "tables": TABLES, "into": "main.killed", "run": "night"}
    with Driver(sync_url, sync_warehouse) as driver:
        assert driver.run(sync=case, fault=["crash", "decide", 2]).killed()
        assert driver.run(sync=case, fault=["crash", "decide:committed", 1]).killed()
    assert run(ws, "night", "main.killed") == {"run_a": (1, True), "run_b": (1, True), "run_c": (1, False)}
    assert [len(rows(table, "main.killed")) for table in TABLES] == [1, 1, 1]
    assert [len(ws.dataset(f"main.killed.{table}").history()) for table in TABLES] == [1, 2, 1]
