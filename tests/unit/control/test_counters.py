"""Counters of all processes: what is counted in memory gets to Postgres, once, and none of it is lost on the way."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from lakeward.control.counters import Counters, Counting
from lakeward.control.db import Database
from lakeward.errors import DatabaseUnavailable

READS = 'lakeward_reads_total{arm="iceberg"}'


@pytest.fixture
def counters(database: Database) -> Iterator[Counters]:
    yield Counters(database)


def test_what_processes_count_is_added_up_by_day_and_dataset(counters: Counters, database: Database) -> None:
    one, other = Counting(counters), Counting(counters)
    for counting, dataset in ((one, 7), (one, 7), (other, 7), (other, 8)):
        counting.metrics.add("lakeward_reads_total", dataset=dataset, arm="iceberg")
    other.metrics.add("lakeward_flags_clamped_total")
    assert (one.values(), counters.totals(7)) == ({READS: 2}, {})
    one.close()
    other.close()
    assert counters.of_datasets(7) == {0: {"lakeward_flags_clamped_total": 1}, 7: {READS: 3}, 8: {READS: 1}}
    # What a process has not brought yet is among what it is told, and it is told of what others have.
    one.metrics.add("lakeward_reads_total", dataset=7, arm="iceberg")
    assert one.values(days=1)[READS] == 5
    with psycopg.connect(database.libpq_url) as connection:
        connection.execute("UPDATE lakeward.counters SET day = day - 6 WHERE dataset_id = 8")
    assert (counters.totals(7)[READS], counters.totals(6)[READS]) == (5, 4)
    assert (counters.forget(7), counters.forget(6), counters.totals(7)[READS]) == (0, 1, 4)


def test_what_can_not_be_written_now_is_written_later(counters: Counters, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = Counting(counters)
    counting.metrics.add("a")

    def away(*_: object) -> None:
        counting.metrics.add("a")  # counted while the others were on their way
        raise DatabaseUnavailable("Postgres is away")

    with monkeypatch.context() as patch:
        patch.setattr(counters, "add", away)
        assert not counting.bring()
    assert counting.values(days=1) == {"a": 2}
    counting.close()
    assert counters.totals(1) == {"a": 2}


def test_it_is_brought_beside_whoever_counts(counters: Counters, monkeypatch: pytest.MonkeyPatch) -> None:
    brought, add = threading.Event(), counters.add

    def told(counts: object) -> None:
        add(counts)  # type: ignore[arg-type]
        brought.set()

    monkeypatch.setattr(counters, "add", told)
    counting = Counting(counters, every_seconds=0.01)
    counting.metrics.add("a")
    assert brought.wait(30)
    counting.close()
    assert counters.totals(1) == {"a": 1}
