"""What the flags say as a process knows them: at most ten seconds old, and at once where a change can be heard of."""

from __future__ import annotations

import logging
import threading

import psycopg
import pytest

from lakeward.control.db import Database
from lakeward.control.flags.cache import FRESH_SECONDS, FlagCache
from lakeward.control.flags.listener import LASTING_SECONDS, NAME, FlagListener
from lakeward.control.flags.registry import READERS, Writer
from lakeward.control.flags.store import FlagTable
from lakeward.control.metrics import Metrics
from lakeward.control.tree import DatasetRecord
from lakeward.testing import FakeClock

WAIT_SECONDS = 30


@pytest.fixture
def table(database: Database) -> FlagTable:
    return FlagTable(database)


def audit(database: Database) -> list[tuple[object, ...]]:
    with psycopg.connect(database.libpq_url) as connection:
        return connection.execute(
            "SELECT action, subject, before, after FROM lakeward.audit_log WHERE action LIKE 'flag.%' ORDER BY id"
        ).fetchall()


def test_a_flag_of_the_dataset_goes_before_that_of_all(
    table: FlagTable, database: Database, dataset: DatasetRecord
) -> None:
    cache = FlagCache(table, FakeClock())
    assert cache.preference("api.read", dataset.id) == "primary"
    for value, where in (("iceberg", None), ("shadow", (dataset.id, dataset.name))):
        assert table.put("reader", "api.read", value, actor="t", dataset=where)
        assert not table.put("reader", "api.read", value, actor="t", dataset=where)
    cache.forget()
    assert [cache.preference("api.read", id_) for id_ in (dataset.id, dataset.id + 1)] == ["shadow", "iceberg"]
    assert table.put("reader", "api.read", None, actor="t", dataset=(dataset.id, dataset.name))
    cache.forget()
    assert cache.preference("api.read", dataset.id) == "iceberg"
    assert audit(database) == [
        ("flag.set", "reader api.read", None, "iceberg"),
        ("flag.set", f"reader api.read of {dataset.name}", None, "shadow"),
        ("flag.clear", f"reader api.read of {dataset.name}", "shadow", None),
    ]


def test_what_is_in_memory_is_looked_at_anew_after_ten_seconds(table: FlagTable) -> None:
    clock = FakeClock()
    cache = FlagCache(table, clock)
    assert cache.preference("export", 1) == "primary"
    table.put("reader", "export", "iceberg", actor="another process")
    clock.advance(FRESH_SECONDS - 0.1)
    assert cache.preference("export", 1) == "primary"
    clock.advance(0.1)
    assert cache.preference("export", 1) == "iceberg"


def test_a_flag_above_a_ceiling_that_was_lowered_is_clamped(table: FlagTable, caplog: pytest.LogCaptureFixture) -> None:
    table.put("writer", "pipeline.output", "iceberg_native", actor="an older version")
    lowered = {"pipeline.output": Writer("pipeline.output", "", ceiling="dual")}
    metrics = Metrics()
    cache = FlagCache(table, FakeClock(), metrics=metrics, writers=lowered)
    with caplog.at_level(logging.WARNING, "lakeward.flags"):
        assert cache.mode_of_new("pipeline.output") == "dual"
    assert caplog.messages == ["the flag of writer pipeline.output says iceberg_native, above its ceiling: it is dual"]
    assert metrics.values() == {'lakeward_flags_clamped_total{writer="pipeline.output"}': 1}
    # And what a newer version has set, or set for what is not here, is the default.
    table.put("reader", "export", "tape", actor="a newer version")
    cache.forget()
    assert cache.preference("export", 1) == READERS["export"].default
    assert (cache.mode_of_new("gone"), cache.preference("gone", 1)) == ("pg", "primary")


def test_a_change_is_heard_of_at_once(table: FlagTable, database: Database) -> None:
    clock, told = FakeClock(), threading.Event()
    listener = FlagListener(database, clock)
    cache = FlagCache(table, clock, lambda forget: listener.asked(lambda: (forget(), told.set())))
    cache.preference("export", 1)
    assert threads() == [], "a process that is soon gone needs no session"
    clock.advance(LASTING_SECONDS)
    cache.preference("export", 1)
    assert listener.hears.wait(WAIT_SECONDS)
    assert cache.preference("export", 1) == "primary"
    told.clear()
    table.put("reader", "export", "iceberg", actor="another process")
    assert told.wait(WAIT_SECONDS)
    assert cache.preference("export", 1) == "iceberg"
    # Where the session ends, another one goes on, and nothing that changes meanwhile is missed.
    told.clear()
    with psycopg.connect(database.libpq_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE application_name = %(name)s AND datname = current_database()",
            {"name": NAME},
        )
    assert told.wait(WAIT_SECONDS) and not listener.hears.is_set()
    assert cache.preference("export", 1) == "iceberg"
    table.put("reader", "export", "shadow", actor="another process")
    clock.advance(LASTING_SECONDS)
    cache.preference("export", 1)
    assert listener.hears.wait(WAIT_SECONDS)
    assert cache.preference("export", 1) == "shadow"
    listener.close()
    assert threads() == []


def test_behind_a_pooler_nobody_listens(table: FlagTable, database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its greeting has another number than the session that answers, which is somebody else's a moment later."""
    monkeypatch.setattr(psycopg.ConnectionInfo, "backend_pid", property(lambda _: -1))
    clock = FakeClock()
    listener = FlagListener(database, clock)
    cache = FlagCache(table, clock, listener.asked)
    cache.preference("export", 1)
    clock.advance(LASTING_SECONDS)
    cache.preference("export", 1)
    for thread in listening() - OTHERS:
        thread.join(WAIT_SECONDS)
    assert threads() == [] and not listener.hears.is_set()
    table.put("reader", "export", "iceberg", actor="another process")
    clock.advance(FRESH_SECONDS)
    assert cache.preference("export", 1) == "iceberg"
    assert threads() == [], "and nobody tries again"
    listener.close()


def listening() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if thread.name == NAME}


OTHERS: set[threading.Thread] = set()
"""Threads of other workspaces that this process has open."""


@pytest.fixture(autouse=True)
def others() -> None:
    """Take note of them before each test."""
    OTHERS.clear()
    OTHERS.update(listening())


def threads() -> list[str]:
    """Return the listeners that the test has started, by name."""
    return [thread.name for thread in listening() - OTHERS]
