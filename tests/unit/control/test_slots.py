"""Slots are handed out in the order of arrival, and waiting in vain says for whom."""

from __future__ import annotations

import os
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from lakeward.clock import SystemClock
from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.control.records import OpenTransaction
from lakeward.control.slots import FIRST_POLL_SECONDS, LONGEST_POLL_SECONDS, Slots
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LockTimeout
from lakeward.testing.fake_clock import FakeClock
from lakeward.types.schema import Schema
from support.ledger import intent_on, rows

SCHEMA = Schema.declare({"id": "long"})


def test_waiting_for_the_slot_names_the_holder(database: Database, dataset: DatasetRecord) -> None:
    clock = FakeClock()
    ledger = Ledger(database)
    slots = Slots(database, ledger, clock, timeout_seconds=3.0)
    build = uuid.uuid4()
    ledger.try_open(intent_on(dataset, build=build, pipeline="orders_daily"))
    rows(database, "UPDATE lakeward.leases SET acquired_at = clock_timestamp() - interval '90 seconds'")
    with pytest.raises(LockTimeout) as caught:
        slots.take(intent_on(dataset), lambda: None)
    assert not rows(database, "SELECT * FROM lakeward.slot_waiters"), "who gives up leaves the line"
    assert sum(clock.slept) == pytest.approx(3.0), "it waited as long as it was allowed to, and no longer"
    assert clock.slept[:3] == [FIRST_POLL_SECONDS, 2 * FIRST_POLL_SECONDS, 4 * FIRST_POLL_SECONDS]
    assert max(clock.slept) == LONGEST_POLL_SECONDS
    fields = caught.value.fields
    assert (fields["dataset"], fields["host"]) == ("main.sales.orders", os.uname().nodename)
    assert (fields["pid"], fields["build"]) == (os.getpid(), str(build))
    assert 90 <= float(str(fields["age_seconds"])) < 120
    for part in ("main.sales.orders", str(os.getpid()), "pipeline orders_daily", str(build), "waited 3.0 s"):
        assert part in str(caught.value)


def test_waiters_come_in_the_order_of_their_arrival(database: Database, dataset: DatasetRecord) -> None:
    ledger = Ledger(database)
    slots = Slots(database, ledger, SystemClock())
    first = ledger.try_open(intent_on(dataset))
    assert first is not None
    served: list[int] = []

    def wait(number: int) -> None:
        opened = slots.take(intent_on(dataset), lambda: None)
        served.append(number)
        time.sleep(0.02)
        ledger.abort(opened.id, opened.fence, None)

    with ThreadPoolExecutor(6) as pool:
        waiting = []
        for number in range(6):
            waiting.append(pool.submit(wait, number))
            _until(lambda number=number: len(rows(database, "SELECT * FROM lakeward.slot_waiters")) == number + 1)
        ledger.abort(first.id, first.fence, None)
        for each in waiting:
            each.result(timeout=30)
    assert served == [0, 1, 2, 3, 4, 5]
    assert not rows(database, "SELECT * FROM lakeward.slot_waiters")


def test_a_change_of_the_route_waits_for_the_write_under_way_alone(database: Database, dataset: DatasetRecord) -> None:
    ledger = Ledger(database)
    slots = Slots(database, ledger, SystemClock())
    first = ledger.try_open(intent_on(dataset))
    assert first is not None
    served: list[str] = []

    def wait(kind: str) -> None:
        opened = slots.take(replace(intent_on(dataset), kind=kind), lambda: None)
        served.append(kind)
        ledger.abort(opened.id, opened.fence, None)

    with ThreadPoolExecutor(3) as pool:
        waiting = []
        for number, kind in enumerate(("write", "write", "route"), start=1):
            waiting.append(pool.submit(wait, kind))
            _until(lambda number=number: len(rows(database, "SELECT * FROM lakeward.slot_waiters")) == number)
        ledger.abort(first.id, first.fence, None)
        for each in waiting:
            each.result(timeout=30)
    assert served == ["route", "write", "write"]
    assert not rows(database, "SELECT * FROM lakeward.slot_waiters")


def test_a_newcomer_does_not_pass_those_who_wait(database: Database, dataset: DatasetRecord) -> None:
    ledger = Ledger(database)
    rows(
        database,
        f"INSERT INTO lakeward.slot_waiters (dataset_id, alive_until) VALUES ({dataset.id}, now() + interval '1 min')",
    )
    assert ledger.try_open(intent_on(dataset)) is None


def test_a_waiter_that_died_is_passed_by(database: Database, dataset: DatasetRecord) -> None:
    ledger = Ledger(database)
    rows(
        database,
        f"INSERT INTO lakeward.slot_waiters (dataset_id, alive_until) VALUES ({dataset.id}, now() - interval '1 s')",
    )
    assert isinstance(ledger.try_open(intent_on(dataset)), OpenTransaction)


def test_a_line_is_of_one_dataset_only(database: Database, tree: Tree, dataset: DatasetRecord) -> None:
    ledger, other = Ledger(database), tree.create_dataset("main.sales.other", SCHEMA)
    rows(
        database,
        f"INSERT INTO lakeward.slot_waiters (dataset_id, alive_until) VALUES ({other.id}, now() + interval '1 min')",
    )
    assert ledger.try_open(intent_on(dataset)) is not None
    assert ledger.try_open(intent_on(other)) is None


def _until(condition: object) -> None:
    assert callable(condition)
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.005)
