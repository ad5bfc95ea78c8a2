"""The ledger's past as people and programs read it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable

import pytest

from lakeward.control.db import Database
from lakeward.control.history import History
from lakeward.control.ledger import Ledger
from lakeward.control.records import OpenTransaction
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.types.schema import Schema
from support.ledger import expire, one_row, opened, rows

Write = Callable[[DatasetRecord], OpenTransaction]


@pytest.fixture
def history(database: Database) -> History:
    """The history in `database`."""
    return History(database)


@pytest.fixture
def customers(tree: Tree) -> DatasetRecord:
    """Another dataset."""
    return tree.create_dataset("main.sales.customers", Schema.declare({"id": "long"}))


def test_transactions_come_newest_first_with_their_counts_and_owner(
    history: History, ledger: Ledger, dataset: DatasetRecord, write: Write
) -> None:
    committed = write(dataset)
    aborted = opened(ledger, dataset)
    ledger.abort(aborted.id, aborted.fence, "ValueRefused: column id, row 3")
    running = opened(ledger, dataset)
    third, second, first = history.transactions({dataset.id: dataset.name})
    assert [(each.version, each.status) for each in (first, second, third)] == [
        (1, "committed"),
        (2, "aborted"),
        (3, "open"),
    ]
    assert (first.dataset, first.build_id, first.writer, first.verb, first.arm) == (
        "main.sales.orders",
        committed.build_id,
        "api.write",
        "append",
        "postgres",
    )
    assert (first.rows_in, first.rows_added, first.rows_skipped, first.row_count) == (1, 1, 0, 1)
    assert first.committed_at is not None
    assert first.committed_at == first.published_at, "this arm has nothing to publish"
    assert (first.owner, first.error) == (None, None)
    assert (second.error, second.rows_in, second.committed_at) == ("ValueRefused: column id, row 3", None, None)
    assert third.owner == f"{os.uname().nodename}, pid {os.getpid()}"
    assert third.build_id == running.build_id


def test_transactions_can_be_narrowed(
    history: History, ledger: Ledger, dataset: DatasetRecord, customers: DatasetRecord, write: Write
) -> None:
    for each in (dataset, customers, dataset):
        write(each)
    opened(ledger, dataset)
    names = {dataset.id: dataset.name, customers.id: customers.name}

    def found(**narrowed: object) -> list[tuple[str, int]]:
        return [(each.dataset, each.version) for each in history.transactions(names, **narrowed)]  # type: ignore[arg-type]

    assert found() == [(dataset.name, 3), (dataset.name, 2), (customers.name, 1), (dataset.name, 1)]
    assert found(most=2) == [(dataset.name, 3), (dataset.name, 2)]
    assert found(dataset_id=customers.id) == [(customers.name, 1)]
    assert found(status="open") == [(dataset.name, 3)]
    assert found(dataset_id=customers.id, status="open") == []
    assert [each.dataset for each in history.transactions({customers.id: "x"})] == ["x"]


def test_transaction_is_plain_json(history: History, dataset: DatasetRecord, write: Write) -> None:
    write(dataset)
    (only,) = history.transactions({dataset.id: dataset.name})
    plain = json.loads(json.dumps(only.to_json()))
    assert plain["build_id"] == str(only.build_id)
    assert plain["committed_at"] == only.committed_at.isoformat()  # type: ignore[union-attr]


def test_recoverable_tells_what_is_held_and_touches_nothing(
    database: Database, history: History, ledger: Ledger, dataset: DatasetRecord, customers: DatasetRecord
) -> None:
    names = {dataset.id: dataset.name, customers.id: customers.name}
    assert history.recoverable(names) == []
    running = opened(ledger, dataset)
    (held,) = history.recoverable(names)
    assert (held.dataset, held.version, held.status, held.held) == (dataset.name, 1, "open", True)
    assert held.owner == f"{os.uname().nodename}, pid {os.getpid()}"
    expire(database)
    assert [each.held for each in history.recoverable(names)] == [False]
    assert rows(database, "SELECT fence FROM lakeward.leases") == [(running.fence,)]
    assert history.recoverable({customers.id: customers.name}) == []


def test_recoverable_knows_a_dead_owner_and_an_unpublished_version(
    database: Database, history: History, ledger: Ledger, dataset: DatasetRecord
) -> None:
    transaction = opened(ledger, dataset)
    rows(database, "UPDATE lakeward.leases SET owner = owner || jsonb_build_object('started', '1')")
    assert [each.held for each in history.recoverable({dataset.id: dataset.name})] == [False]
    ledger.decide([one_row(transaction)])
    rows(database, "UPDATE lakeward.dataset_transactions SET published_at = NULL")
    (unpublished,) = history.recoverable({dataset.id: dataset.name})
    assert (unpublished.status, unpublished.held, unpublished.owner) == ("committed", False, None)
