"""Changes of a dataset's status: with its row locked, and only while what was found out still holds."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest

from lakeward.control.db import Database
from lakeward.control.divergence import Compaction, Divergence
from lakeward.control.ledger import QUERIES, Ledger
from lakeward.control.records import ArmVersion, OpenTransaction, Resolution
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.errors import ConflictError, LeaseLost
from support.ledger import expire, head, intent_on, one_row, opened, rows, state

RESOLUTION = Resolution("somebody", "ledger.restore", 7, 1)

Write = Callable[[DatasetRecord], OpenTransaction]


@pytest.fixture
def divergence(database: Database) -> Divergence:
    return Divergence(database)


def committed(
    ledger: Ledger, dataset: DatasetRecord, snapshot: int, parent: int, *, published: bool
) -> OpenTransaction:
    """Commit one row to the Iceberg arm."""
    transaction = ledger.try_open(replace(intent_on(dataset), arm="iceberg"))
    assert transaction is not None
    ledger.decide([replace(one_row(transaction), publishes=True, snapshot_id=snapshot, parent_snapshot_id=parent)])
    if published:
        ledger.mark_published(transaction.id)
    return transaction


def status(database: Database) -> object:
    return rows(database, "SELECT status FROM lakeward.datasets ORDER BY id")[0][0]


# Marking --------------------------------------------------------------------------------------------------------------


def test_open_writer_marks(database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord) -> None:
    transaction = opened(ledger, dataset)
    assert divergence.mark(dataset.id, transaction.id, transaction.fence)
    assert status(database) == "diverged"


def test_writer_that_was_taken_over_marks_nothing(
    database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord
) -> None:
    """What it sees is its successor's work."""
    transaction = opened(ledger, dataset)
    expire(database)
    (left,) = Ledger(database).unfinished(dataset.id)
    assert not divergence.mark(dataset.id, transaction.id, transaction.fence)
    ledger.abort(left.id, left.fence, None)
    assert not divergence.mark(dataset.id, transaction.id, transaction.fence)
    assert status(database) == "ok"


def test_publisher_that_was_slower_marks_nothing(
    database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord
) -> None:
    transaction = committed(ledger, dataset, 11, 10, published=False)
    assert divergence.unpublished(dataset.id)
    assert divergence.mark(dataset.id, transaction.id)
    ledger.mark_published(transaction.id)
    assert divergence.clear(dataset.id, dataset.name, RESOLUTION)
    assert not divergence.mark(dataset.id, transaction.id)
    assert (status(database), divergence.unpublished(dataset.id)) == ("ok", False)


def test_mark_waits_for_whoever_resolves(
    database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord
) -> None:
    transaction = committed(ledger, dataset, 11, 10, published=False)
    marked: list[bool] = []
    marking = threading.Thread(target=lambda: marked.append(divergence.mark(dataset.id, transaction.id)))
    with psycopg.connect(database.libpq_url) as resolving:
        resolving.execute("SELECT 1 FROM lakeward.datasets FOR NO KEY UPDATE")
        marking.start()
        marking.join(0.3)
        assert marking.is_alive()
        resolving.execute("UPDATE lakeward.dataset_transactions SET published_at = now()")
    marking.join(20)
    assert (marked, status(database)) == ([False], "ok")


# Compaction -----------------------------------------------------------------------------------------------------------


def test_compaction_comes_before_the_writer(
    database: Database, ledger: Ledger, divergence: Divergence, tree: Tree, dataset: DatasetRecord
) -> None:
    committed(ledger, dataset, 11, 10, published=True)
    transaction = ledger.try_open(replace(intent_on(dataset), arm="iceberg"))
    assert transaction is not None
    parent = ledger.newest_arm_version(dataset.id, "iceberg")
    assert parent is not None
    moved = divergence.compacted(transaction, Compaction(12, parent, (3, 4)), uuid.uuid4())
    assert (moved.version, moved.parent_version) == (3, 2)
    assert moved.parent_digest == (3, 4)
    assert replace(moved, version=2, parent_version=1, parent_digest=None) == transaction
    assert head(database) == (2, 1)
    assert ledger.arm_version(dataset.id, "iceberg") == ArmVersion(2, 1, 12, 11)
    kinds = "SELECT version, kind, status, row_count, rows_unchanged, digest_high, digest_low"
    assert rows(database, f"{kinds} FROM lakeward.dataset_transactions ORDER BY version") == [
        (1, "write", "committed", 1, 0, None, None),
        (2, "adopt", "committed", 1, 1, 3, 4),
        (3, "write", "open", None, None, None, None),
    ]
    ledger.decide([replace(one_row(moved), publishes=True, snapshot_id=13, parent_snapshot_id=12)])
    assert head(database) == (3, 2)


def test_compaction_of_a_stale_arm_is_no_version(
    database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord, write: Write
) -> None:
    committed(ledger, dataset, 11, 10, published=True)
    parent = ledger.newest_arm_version(dataset.id, "iceberg")
    assert parent is not None
    write(dataset)
    transaction = ledger.try_open(replace(intent_on(dataset), arm="iceberg", kind="copy"))
    assert transaction is not None
    assert divergence.compacted(transaction, Compaction(12, parent, (3, 4)), uuid.uuid4()) is transaction
    assert head(database) == (2, 2)


def test_compaction_found_by_one_who_was_taken_over_is_not_recorded(
    database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord
) -> None:
    committed(ledger, dataset, 11, 10, published=True)
    parent = ledger.newest_arm_version(dataset.id, "iceberg")
    transaction = opened(ledger, dataset)
    assert parent is not None
    expire(database)
    with pytest.raises(LeaseLost):
        divergence.compacted(transaction, Compaction(12, parent, (3, 4)), uuid.uuid4())
    assert (head(database), state(database)) == ((1, 1), [(1, "committed"), (2, "open")])


def test_recovery_that_looked_before_the_writer_moved_up_discards_what_it_prepared_after(
    database: Database,
    ledger: Ledger,
    divergence: Divergence,
    dataset: DatasetRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else it would discard the adopted version's branch, and leave the aborted one's."""
    committed(ledger, dataset, 11, 10, published=True)
    parent = ledger.newest_arm_version(dataset.id, "iceberg")
    transaction = ledger.try_open(replace(intent_on(dataset), arm="iceberg"))
    assert parent is not None
    assert transaction is not None
    expire(database)
    fetch, unfinished = database.fetch, QUERIES["unfinished"]
    seen = fetch(unfinished, {"dataset_id": dataset.id})
    rows(database, "UPDATE lakeward.leases SET lease_until = clock_timestamp() + interval '1 hour'")
    divergence.compacted(transaction, Compaction(12, parent, (3, 4)), uuid.uuid4())
    expire(database)
    monkeypatch.setattr(
        database, "fetch", lambda query, *arguments: seen if query is unfinished else fetch(query, *arguments)
    )
    (left,) = ledger.unfinished(dataset.id)
    assert (left.id, left.version, left.status) == (transaction.id, 3, "open")


# Ways out -------------------------------------------------------------------------------------------------------------


def test_adopting_opens_and_supersedes_what_could_not_be_published(
    database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord
) -> None:
    stuck = committed(ledger, dataset, 11, 10, published=False)
    assert divergence.mark(dataset.id, stuck.id)
    adopting = ledger.try_open(replace(intent_on(dataset), kind="adopt", verb="adopt", arm="iceberg"))
    assert adopting is not None
    resolution = Resolution("somebody", "ledger.adopt", 12, 11)
    ledger.decide([replace(one_row(adopting), snapshot_id=12, parent_snapshot_id=11, resolution=resolution)])
    assert (status(database), divergence.unpublished(dataset.id)) == ("ok", False)
    assert rows(database, "SELECT actor, action, subject, before, after FROM lakeward.audit_log ORDER BY id")[-1] == (
        "somebody",
        "ledger.adopt",
        dataset.name,
        {"main": 12, "ours": 11},
        {"ours": 12},
    )
    assert opened(ledger, dataset).version == 3


def test_restoring_publishes_the_version_that_made_the_snapshot(
    database: Database, ledger: Ledger, divergence: Divergence, dataset: DatasetRecord
) -> None:
    """A copy carries the snapshot along under a newer version, whose own arm has nothing to publish."""
    maker = committed(ledger, dataset, 11, 10, published=True)
    copy = ledger.try_open(replace(intent_on(dataset), kind="copy", verb="copy", arm="postgres"))
    assert copy is not None
    ledger.decide([replace(one_row(copy), rebases=True)])
    held = ledger.newest_arm_version(dataset.id, "iceberg")
    assert held is not None
    assert held.version == 2
    found = divergence.restore(dataset.id, dataset.name, "iceberg", held, 7, RESOLUTION)
    assert found is not None
    assert (found.id, found.version) == (maker.id, 1)
    (left,) = ledger.unfinished(dataset.id)
    assert (left.id, left.arms, left.status) == (maker.id, ("iceberg",), "committed")
    assert ledger.arm_version(dataset.id, "iceberg", 1) == ArmVersion(1, 1, 11, 7)
    assert ledger.try_open(intent_on(dataset)) is None, "until it is published"


def test_restoring_is_refused_while_somebody_writes(
    ledger: Ledger, divergence: Divergence, dataset: DatasetRecord
) -> None:
    committed(ledger, dataset, 11, 10, published=True)
    held = ledger.newest_arm_version(dataset.id, "iceberg")
    assert held is not None
    opened(ledger, dataset)
    with pytest.raises(ConflictError, match="is being written"):
        divergence.restore(dataset.id, dataset.name, "iceberg", held, 7, RESOLUTION)
    assert not divergence.unpublished(dataset.id)


def test_clear_of_no_divergence_leaves_no_trace(
    database: Database, divergence: Divergence, dataset: DatasetRecord
) -> None:
    before = rows(database, "SELECT count(*) FROM lakeward.audit_log")
    assert not divergence.clear(dataset.id, dataset.name, RESOLUTION)
    assert rows(database, "SELECT count(*) FROM lakeward.audit_log") == before
