"""The ledger with everybody at it: each interleaving that could cost a decide, or commit what was taken over."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
import unittest.mock
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import psycopg
import pytest
import sqlalchemy

from lakeward.control.db import Database, Pipeline, Queries
from lakeward.control.ledger import Ledger
from lakeward.control.records import OpenTransaction
from lakeward.control.slots import Slots
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import LakewardError, LeaseLost, LockTimeout
from lakeward.testing import FakeClock
from lakeward.types.schema import Schema
from support.ledger import expire, head, intent_on, one_row, opened, rows, state

SCHEMA = Schema.declare({"id": "long"})


@pytest.fixture
def other(database: Database) -> Ledger:
    """The ledger as another process sees it."""
    return Ledger(database)


class Task(threading.Thread):
    """A call in a thread, and what came of it."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self._call = call
        self.result: object = "it did not end"
        self.start()

    def run(self) -> None:
        try:
            self.result = self._call()
        except LakewardError as error:
            self.result = error

    def outcome(self) -> object:
        self.join(30)
        assert not self.is_alive()
        return self.result


@contextmanager
def held_before(database: Database, fragment: str) -> Iterator[tuple[threading.Event, threading.Event]]:
    """The first statement with that text waits for the second event; the first event tells that it is reached."""
    reached, go_on = threading.Event(), threading.Event()

    def wait(*args: object) -> None:
        if fragment in str(args[2]) and not reached.is_set():
            reached.set()
            assert go_on.wait(20)

    send = Pipeline.__call__

    def send_later(pipeline: Pipeline, queries: Queries, name: str, parameters: Mapping[str, object]) -> Any:
        if fragment in queries.for_driver(name) and not reached.is_set():
            # What was sent before it has been done by then.
            pipeline.wait()
            wait(None, None, fragment)
        return send(pipeline, queries, name, parameters)

    sqlalchemy.event.listen(database.engine, "before_cursor_execute", wait)
    try:
        with unittest.mock.patch.object(Pipeline, "__call__", send_later):
            yield reached, go_on
    finally:
        go_on.set()
        sqlalchemy.event.remove(database.engine, "before_cursor_execute", wait)


def until_blocked(database: Database, processes: int = 1) -> None:
    """Wait until so many sessions wait for a lock."""
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    deadline = time.monotonic() + 20
    while rows(database, waiting) < [(processes,)]:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize("step", ["SET status = 'committed'", "SET head_version", "DELETE FROM lakeward.leases"])
def test_intent_waits_for_a_decide_under_way_and_starts_from_its_head(
    database: Database, ledger: Ledger, dataset: DatasetRecord, step: str
) -> None:
    """Were the rows locked in another order than decide's, the two would wait for each other."""
    transaction = opened(ledger, dataset)
    with held_before(database, step) as (reached, go_on):
        deciding = Task(lambda: ledger.decide([one_row(transaction)]))
        assert reached.wait(20)
        opening = Task(lambda: ledger.try_open(intent_on(dataset)))
        until_blocked(database)
        go_on.set()
        assert deciding.outcome() is None
        after = opening.outcome()
    assert isinstance(after, OpenTransaction)
    assert (after.version, after.parent_version, after.parent_row_count) == (2, 1, 1)


@pytest.mark.parametrize("step", ["SET head_version", "DELETE FROM lakeward.leases"])
def test_take_over_waits_for_a_decide_that_was_in_time(
    database: Database, ledger: Ledger, other: Ledger, dataset: DatasetRecord, step: str
) -> None:
    transaction = opened(ledger, dataset)
    with held_before(database, step) as (reached, go_on):
        deciding = Task(lambda: ledger.decide([one_row(transaction)]))
        assert reached.wait(20)
        expire(database)
        recovering = Task(lambda: other.unfinished(dataset.id))
        until_blocked(database)
        go_on.set()
        assert deciding.outcome() is None
        assert recovering.outcome() == []
    assert (state(database), head(database)) == ([(1, "committed")], (1, 1))


def test_decide_that_comes_while_it_is_taken_over_is_refused(
    database: Database, ledger: Ledger, other: Ledger, dataset: DatasetRecord
) -> None:
    transaction = opened(ledger, dataset)
    expire(database)
    with held_before(database, "WITH taken AS") as (reached, go_on):
        recovering = Task(lambda: other.unfinished(dataset.id))
        assert reached.wait(20)
        rows(database, "UPDATE lakeward.leases SET lease_until = clock_timestamp() + interval '1 hour'")
        deciding = Task(lambda: ledger.decide([one_row(transaction)]))
        until_blocked(database)
        expire(database)
        go_on.set()
        assert recovering.outcome() != []
        assert isinstance(deciding.outcome(), LeaseLost)
    assert (state(database), head(database)) == ([(1, "open")], (0, 0))


def test_heartbeat_beside_decide_of_two_outputs(
    database: Database, ledger: Ledger, tree: Tree, dataset: DatasetRecord
) -> None:
    second = tree.create_dataset("main.sales.second", SCHEMA)
    build = uuid.uuid4()
    # Opened in the other order than decide goes through the datasets.
    both = [ledger.try_open(intent_on(each, build=build)) for each in (second, dataset)]
    decisions = [one_row(each) for each in both if each is not None]
    transactions = [each.transaction for each in decisions]
    with held_before(database, "DELETE FROM lakeward.leases") as (reached, go_on):
        deciding = Task(lambda: ledger.decide(decisions))
        assert reached.wait(20)
        go_on.set()
        beats = [Task(ledger.heartbeat(order)._renew) for order in (transactions, transactions[::-1]) * 3]
        assert deciding.outcome() is None
        assert all(beat.outcome() in (True, False) for beat in beats)


def test_two_recoverers_and_one_abandoned_transaction(
    database: Database, ledger: Ledger, dataset: DatasetRecord
) -> None:
    opened(ledger, dataset)
    expire(database)
    with held_before(database, "WITH taken AS") as (reached, go_on):
        first = Task(lambda: ledger.unfinished(dataset.id))
        assert reached.wait(20)
        second = Task(lambda: ledger.unfinished(dataset.id))
        until_blocked(database)
        go_on.set()
        found = [first.outcome(), second.outcome()]
    assert sorted(len(each) for each in found) == [0, 1]  # type: ignore[arg-type]


def test_chunk_under_way_is_waited_for(
    database: Database, ledger: Ledger, other: Ledger, dataset: DatasetRecord
) -> None:
    transaction = opened(ledger, dataset)
    with psycopg.connect(database.libpq_url) as writer:
        Ledger.hold(writer, transaction)
        expire(database)
        recovering = Task(lambda: other.unfinished(dataset.id))
        until_blocked(database)
        writer.commit()
        (left,) = recovering.outcome()  # type: ignore[misc]
    assert left.fence > transaction.fence
    assert rows(database, "SHOW lock_timeout") == [("0",)], "the patience was that transaction's only"


def test_session_of_a_writer_stopped_within_a_chunk_is_ended(
    database: Database, ledger: Ledger, other: Ledger, dataset: DatasetRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would hold the row for as long as it is stopped, and everybody else would wait for it."""
    monkeypatch.setattr("lakeward.control.ledger.TAKE_OVER_MILLISECONDS", 100)
    transaction = opened(ledger, dataset)
    with psycopg.connect(database.libpq_url) as bystander, psycopg.connect(database.libpq_url) as writer:
        bystander.execute("SELECT 1")
        Ledger.hold(writer, transaction)
        assert other.unfinished(dataset.id) == [], "its lease has not run out"
        expire(database)
        (left,) = other.unfinished(dataset.id)
        assert left.fence > transaction.fence
        with pytest.raises(psycopg.OperationalError, match="terminating connection"):
            writer.execute("SELECT 1")
        assert bystander.execute("SELECT 2").fetchone() == (2,)


def test_lost_answer_of_decide_is_waited_for(database: Database, ledger: Ledger, dataset: DatasetRecord) -> None:
    """A server may still be committing what its client no longer waits for. "Open" must not be read in between."""
    transaction = opened(ledger, dataset)
    with psycopg.connect(database.libpq_url) as deciding:
        deciding.execute(
            "UPDATE lakeward.dataset_transactions SET status = 'committed', committed_at = now(), row_count = 0,"
            " rows_in = 0, rows_added = 0, rows_updated = 0, rows_unchanged = 0, rows_skipped = 0, rows_deleted = 0"
        )
        asking = [Task(lambda: ledger.status(transaction)), Task(lambda: ledger.still_open(transaction))]
        until_blocked(database, 2)
        deciding.commit()
        assert [task.outcome() for task in asking] == ["committed", False]


def test_intent_that_waited_for_a_switch_follows_the_new_route(
    database: Database, ledger: Ledger, dataset: DatasetRecord
) -> None:
    with psycopg.connect(database.libpq_url) as switch:
        switch.execute("SELECT 1 FROM lakeward.datasets FOR NO KEY UPDATE")
        opening = Task(lambda: ledger.try_open(intent_on(dataset)))
        until_blocked(database)
        switch.execute("UPDATE lakeward.routes SET mode = 'iceberg_native', primary_arm = 'iceberg', epoch = epoch + 1")
        switch.commit()
        transaction = opening.outcome()
    assert isinstance(transaction, OpenTransaction)
    assert (transaction.arm, transaction.route.epoch) == ("iceberg", 2)
    ledger.decide([replace(one_row(transaction), publishes=True, snapshot_id=1)])


def test_switch_waits_for_decide(database: Database, ledger: Ledger, dataset: DatasetRecord) -> None:
    transaction = opened(ledger, dataset)
    with held_before(database, "SET head_version") as (reached, go_on):
        deciding = Task(lambda: ledger.decide([one_row(transaction)]))
        assert reached.wait(20)
        switching = Task(lambda: rows(database, "UPDATE lakeward.routes SET epoch = epoch + 1 RETURNING epoch"))
        until_blocked(database)
        go_on.set()
        assert deciding.outcome() is None
        assert switching.outcome() == [(2,)]


def test_writers_of_one_dataset_at_once_lose_nothing(database: Database, dataset: DatasetRecord) -> None:
    """Six writers, each in its own loop, with a recoverer in between: every commit is one version and one row."""

    def work() -> int:
        ledger, done = Ledger(database), 0
        while done < 8:
            transaction = ledger.try_open(intent_on(dataset))
            ledger.unfinished(dataset.id)
            if transaction is not None:
                ledger.decide([one_row(transaction)])
                done += 1
        return done

    assert [task.outcome() for task in [Task(work) for _ in range(6)]] == [8] * 6
    assert head(database) == (48, 48)
    assert [version for version, status in state(database) if status == "committed"] == list(range(1, 49))


# Dead owners ----------------------------------------------------------------------------------------------------------

OPEN_AND_WAIT = """
import sys, uuid
from lakeward.clock import SystemClock
from lakeward.control.db import Database, Pipeline, Queries
from lakeward.control.ledger import Ledger
from lakeward.control.records import Intent
ledger = Ledger(Database(sys.argv[1]), lease_seconds=3600)
intent = Intent(int(sys.argv[2]), "main.sales.orders", "write", "append", uuid.uuid4(), "api.write")
print(ledger.try_open(intent).fence, flush=True)
sys.stdin.read()
"""


def test_transaction_of_a_killed_process_is_taken_over_before_its_lease_runs_out(
    database: Database, ledger: Ledger, dataset: DatasetRecord
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", OPEN_AND_WAIT, database.libpq_url, str(dataset.id)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert child.stdout is not None
    fence = int(child.stdout.readline())
    assert ledger.unfinished(dataset.id) == [], "its owner lives"
    assert ledger.try_open(intent_on(dataset)) is None
    child.kill()
    child.wait()
    (left,) = ledger.unfinished(dataset.id)
    assert left.fence > fence
    assert ledger.abort(left.id, left.fence, "its owner stopped")
    assert opened(ledger, dataset).version == 2


def test_owner_elsewhere_is_judged_by_its_lease_alone(
    database: Database, ledger: Ledger, dataset: DatasetRecord
) -> None:
    opened(ledger, dataset)
    rows(
        database,
        "UPDATE lakeward.leases SET owner = owner || jsonb_build_object('host', 'elsewhere', 'pid', 1, 'boot', 'x')",
    )
    assert ledger.unfinished() == []
    with pytest.raises(LockTimeout, match="elsewhere, pid 1"):
        Slots(database, ledger, FakeClock(), timeout_seconds=0).take(intent_on(dataset), lambda: None)
    expire(database)
    assert len(ledger.unfinished()) == 1
