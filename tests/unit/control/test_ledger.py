"""The ledger: one open transaction per dataset, and decide only with lease, fence and route as they were."""

from __future__ import annotations

import threading
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
import sqlalchemy

from lakeward.control.db import Database
from lakeward.control.identifiers import TableIdentifier
from lakeward.control.ledger import Ledger
from lakeward.control.records import ArmVersion, Counts, OpenTransaction, Window
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ConflictError, Diverged, LeaseLost, LockTimeout, RouteChanged
from lakeward.types.schema import Schema
from support.ledger import expire, head, intent_on, one_row, opened, rows, state

SCHEMA = Schema.declare({"id": "long"})

Write = Callable[[DatasetRecord], OpenTransaction]


@pytest.fixture
def other(database: Database) -> Ledger:
    """The ledger as another process sees it."""
    return Ledger(database)


# Intent ---------------------------------------------------------------------------------------------------------------


def test_versions_count_up_and_an_aborted_one_is_never_used_again(
    database: Database, ledger: Ledger, dataset: DatasetRecord, write: Write
) -> None:
    assert write(dataset).version == 1
    second = opened(ledger, dataset)
    assert (second.version, second.parent_version) == (2, 1)
    assert ledger.abort(second.id, second.fence, "stopped")
    third = opened(ledger, dataset)
    assert (third.version, third.parent_version, third.next_row_id, third.parent_row_count) == (3, 1, 1, 1)
    assert third.fence > second.fence
    assert head(database) == (1, 1)


def test_only_one_transaction_is_open_per_dataset(
    database: Database, ledger: Ledger, other: Ledger, tree: Tree, dataset: DatasetRecord
) -> None:
    first = opened(ledger, dataset)
    assert other.try_open(intent_on(dataset)) is None
    assert ledger.try_open(intent_on(dataset)) is None
    assert opened(other, tree.create_dataset("main.sales.customers", SCHEMA)).version == 1
    ledger.abort(first.id, first.fence, None)
    assert opened(other, dataset).version == 2
    with pytest.raises(sqlalchemy.exc.IntegrityError, match="one_open_per_dataset"):
        rows(database, "UPDATE lakeward.dataset_transactions SET status = 'open'")


def test_ten_threads_open_one_dataset(ledger: Ledger, dataset: DatasetRecord) -> None:
    start = threading.Barrier(10, timeout=30)
    answers: list[OpenTransaction | None] = []

    def run() -> None:
        start.wait()
        answers.append(ledger.try_open(intent_on(dataset)))

    threads = [threading.Thread(target=run) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 10
    assert len([answer for answer in answers if answer is not None]) == 1


def test_diverged_dataset_is_not_opened(
    database: Database, ledger: Ledger, dataset: DatasetRecord, write: Write
) -> None:
    write(dataset)
    rows(database, "UPDATE lakeward.datasets SET status = 'diverged'")
    with pytest.raises(Diverged, match=r"main\.sales\.orders.*\nSafe: reads stay at the last committed version, 1"):
        ledger.try_open(intent_on(dataset))


# Lease ----------------------------------------------------------------------------------------------------------------


def remaining(database: Database) -> float:
    return float(
        str(rows(database, "SELECT extract(epoch FROM lease_until - now())::float8 FROM lakeward.leases")[0][0])
    )


def test_heartbeat_renews_the_lease(database: Database, dataset: DatasetRecord) -> None:
    ledger = Ledger(database, lease_seconds=0.6)
    transaction = opened(ledger, dataset)
    with ledger.heartbeat([transaction]) as heartbeat:
        until = time.monotonic() + 1.5
        while time.monotonic() < until:
            time.sleep(0.05)
        assert not heartbeat.lost
        assert remaining(database) > 0
    ledger.decide([one_row(transaction)])
    assert head(database) == (1, 1)


def test_lease_that_ran_out_is_not_renewed(database: Database, dataset: DatasetRecord) -> None:
    ledger = Ledger(database, lease_seconds=0.06)
    transaction = opened(ledger, dataset)
    expire(database)
    with ledger.heartbeat([transaction]) as heartbeat:
        deadline = time.monotonic() + 10
        while not heartbeat.lost and time.monotonic() < deadline:
            time.sleep(0.01)
    assert heartbeat.lost
    assert remaining(database) < 0


def test_chunk_is_refused_once_the_lease_or_the_fence_is_gone(
    database: Database, ledger: Ledger, other: Ledger, dataset: DatasetRecord
) -> None:
    transaction = opened(ledger, dataset)
    with database.driver() as connection, connection.transaction():
        Ledger.hold(connection, transaction)
    expire(database)
    with database.driver() as connection, pytest.raises(LeaseLost, match=r"version 1 of dataset main\.sales\.orders"):
        Ledger.hold(connection, transaction)
    assert len(other.unfinished(dataset.id)) == 1
    with database.driver() as connection, pytest.raises(LeaseLost):
        Ledger.hold(connection, transaction)


# Decide ---------------------------------------------------------------------------------------------------------------


def test_decide_moves_head_counts_arm_and_watermark_together(
    database: Database, ledger: Ledger, tree: Tree, dataset: DatasetRecord, write: Write
) -> None:
    source = tree.create_dataset("main.sales.source", SCHEMA)
    write(source)
    intent = replace(intent_on(dataset), windows={source.id: Window(0, 1)})
    transaction = ledger.try_open(intent)
    assert transaction is not None
    watermarks = "SELECT dataset_id, source_id, version FROM lakeward.watermarks"
    assert rows(database, watermarks) == []
    assert ledger.arm_version(dataset.id, "postgres") is None
    assert ledger.newest_arm_version(dataset.id, "postgres") is None
    place = TableIdentifier(("a", "b"), dataset.slugs[2])
    ledger.decide([replace(one_row(transaction), digest=(2**64 - 1, 7), identifier=place)])
    assert rows(database, watermarks) == [(dataset.id, source.id, 1)]
    assert ledger.arm_version(dataset.id, "postgres") == ArmVersion(1, 1, None, None)
    record = tree.by_id(dataset.id)
    assert (record.head_version, record.row_count, record.next_row_id, record.next_row_index) == (1, 1, 1, 1)
    assert record.iceberg_namespace == ("a", "b") and record.identifier == place
    ledger_row = "SELECT status, row_count, digest_high, digest_low, committed_at <= clock_timestamp()"
    assert rows(database, f"{ledger_row} FROM lakeward.dataset_transactions WHERE dataset_id = {dataset.id:d}") == [
        ("committed", 1, 2**64 - 1, 7, True)
    ]
    assert rows(database, "SELECT count(*) FROM lakeward.leases") == [(0,)]
    assert ledger.status(transaction) == "committed"
    assert not ledger.still_open(transaction)


def test_a_table_is_where_it_was_written_last(ledger: Ledger, tree: Tree, dataset: DatasetRecord) -> None:
    """One that was emptied and went may have been made anew somewhere else; who writes to none says nothing of it."""
    for parts in (("a", "b", "t"), ("c", "u")):
        ledger.decide([replace(one_row(opened(ledger, dataset)), identifier=TableIdentifier.of(parts))])
        ledger.decide([one_row(opened(ledger, dataset))])
        assert tree.by_id(dataset.id).identifier == TableIdentifier.of(parts)


def test_base_stays_until_a_version_replaces_every_row(ledger: Ledger, dataset: DatasetRecord) -> None:
    for rebases in (False, False, True, False):
        ledger.decide([replace(one_row(opened(ledger, dataset)), rebases=rebases)])
    held = [ledger.arm_version(dataset.id, "postgres", version) for version in range(1, 5)]
    assert [each and (each.version, each.base_version) for each in held] == [(1, 1), (2, 1), (3, 3), (4, 3)]
    assert ledger.arm_version(dataset.id, "postgres", 5) is None
    assert ledger.arm_version(dataset.id, "iceberg") is None


def test_copy_carries_the_other_arm_along(ledger: Ledger, dataset: DatasetRecord, write: Write) -> None:
    write(dataset)
    copy = ledger.try_open(replace(intent_on(dataset), kind="copy", arm="iceberg"))
    assert copy is not None
    decision = replace(one_row(copy), rebases=True, publishes=True, snapshot_id=11, parent_snapshot_id=10)
    ledger.decide([decision])
    assert ledger.arm_version(dataset.id, "iceberg") == ArmVersion(2, 2, 11, 10)
    assert ledger.arm_version(dataset.id, "postgres") == ArmVersion(2, 1, None, None)
    assert ledger.try_open(intent_on(dataset)) is None, "what is not published yet keeps the slot"
    ledger.mark_published(copy.id)
    write(dataset)
    assert ledger.arm_version(dataset.id, "iceberg") is None, "it does not hold the head"
    newest = ledger.newest_arm_version(dataset.id, "iceberg")
    assert newest is not None
    assert newest.version == 2


def test_changed_route_refuses_decide_and_leaves_the_dataset(
    database: Database, ledger: Ledger, dataset: DatasetRecord
) -> None:
    transaction = opened(ledger, dataset)
    rows(database, "UPDATE lakeward.routes SET epoch = epoch + 1")
    with pytest.raises(RouteChanged, match=r"main\.sales\.orders.*\nSafe: the dataset is unchanged at version 0"):
        ledger.decide([one_row(transaction)])
    assert (state(database), head(database)) == ([(1, "open")], (0, 0))
    assert ledger.still_open(transaction), "so what it prepared is removed, and the transaction ended"
    assert ledger.abort(transaction.id, transaction.fence, "RouteChanged")


def test_expired_lease_refuses_decide(database: Database, ledger: Ledger, dataset: DatasetRecord) -> None:
    transaction = opened(ledger, dataset)
    expire(database)
    with pytest.raises(LeaseLost, match="lease ran out"):
        ledger.decide([one_row(transaction)])
    assert (state(database), head(database)) == ([(1, "open")], (0, 0))


def test_owner_that_was_taken_over_can_not_decide_renew_or_abort(
    database: Database, ledger: Ledger, other: Ledger, dataset: DatasetRecord
) -> None:
    transaction = opened(ledger, dataset)
    expire(database)
    (left,) = other.unfinished(dataset.id)
    assert (left.status, left.version, left.id) == ("open", 1, transaction.id)
    assert left.fence > transaction.fence
    assert other.unfinished(dataset.id) == [], "its new owner lives"
    with pytest.raises(LeaseLost):
        ledger.decide([one_row(transaction)])
    assert not ledger.still_open(transaction)
    assert not ledger.abort(transaction.id, transaction.fence, "late")
    assert other.abort(left.id, left.fence, "its owner stopped")
    assert not other.abort(left.id, left.fence, "again"), "the second time it has ended"
    assert rows(database, "SELECT status, error FROM lakeward.dataset_transactions") == [
        ("aborted", "its owner stopped")
    ]
    assert rows(database, "SELECT count(*) FROM lakeward.leases") == [(0,)]
    with pytest.raises(LeaseLost):
        ledger.decide([one_row(transaction)])
    assert head(database) == (0, 0)


def test_all_outputs_of_a_build_or_none(database: Database, ledger: Ledger, tree: Tree, dataset: DatasetRecord) -> None:
    second = tree.create_dataset("main.sales.second", SCHEMA)
    build = uuid.uuid4()
    both = [ledger.try_open(intent_on(each, build=build)) for each in (dataset, second)]
    decisions = [one_row(each) for each in both if each is not None]
    rows(
        database,
        "UPDATE lakeward.leases SET lease_until = now() WHERE transaction_id = :id",
        id=decisions[1].transaction.id,
    )
    with pytest.raises(LeaseLost, match="second"):
        ledger.decide(decisions)
    assert ledger.heads([dataset.id, second.id]) == {dataset.id: 0, second.id: 0}
    rows(database, "UPDATE lakeward.leases SET lease_until = now() + interval '1 minute'")
    ledger.decide(decisions[::-1])
    assert ledger.heads([dataset.id, second.id]) == {dataset.id: 1, second.id: 1}
    committed = rows(database, "SELECT DISTINCT committed_at FROM lakeward.dataset_transactions")
    assert len(committed) == 1


def test_heads_of_none_are_none(ledger: Ledger) -> None:
    assert ledger.heads([]) == {}


def test_committed_row_is_complete(database: Database, ledger: Ledger, dataset: DatasetRecord) -> None:
    transaction = opened(ledger, dataset)
    with pytest.raises(psycopg.errors.CheckViolation, match="committed_is_complete"):
        ledger.decide([replace(one_row(transaction), counts=Counts(5, 1, 1, 1, 9, 1, 1))])
    with pytest.raises(sqlalchemy.exc.IntegrityError, match="committed_is_complete"):
        rows(
            database,
            "UPDATE lakeward.dataset_transactions SET status = 'committed', committed_at = now(), row_count = 1,"
            " rows_in = 1, rows_added = NULL",
        )
    assert (state(database), head(database)) == ([(1, "open")], (0, 0))
    ledger.decide([replace(one_row(transaction), counts=Counts(4, 1, 1, 1, 9, 1, 1))])


def test_published_is_recorded_once(database: Database, ledger: Ledger, dataset: DatasetRecord) -> None:
    transaction = opened(ledger, dataset)
    ledger.mark_published(transaction.id)
    published = "SELECT published_at FROM lakeward.dataset_transactions"
    assert rows(database, published) == [(None,)], "nothing is committed yet"
    ledger.decide([replace(one_row(transaction), publishes=True)])
    (left,) = ledger.unfinished()
    assert (left.status, left.version) == ("committed", 1)
    ledger.mark_published(transaction.id)
    first = rows(database, published)
    ledger.mark_published(transaction.id)
    assert rows(database, published) == first
    assert ledger.unfinished() == []


def test_conflicts_share_an_exit_code() -> None:
    assert {error.exit_code for error in (LockTimeout, LeaseLost, RouteChanged, Diverged, ConflictError)} == {6}
