"""What tests ask of the ledger: an intent, the decision that one row was added, and a statement run as it stands."""

from __future__ import annotations

import uuid

import sqlalchemy

from lakeward.control.db import Database
from lakeward.control.ledger import Ledger
from lakeward.control.records import Counts, Decision, Intent, OpenTransaction
from lakeward.control.tree import DatasetRecord


def intent_on(dataset: DatasetRecord, *, build: uuid.UUID | None = None, pipeline: str | None = None) -> Intent:
    """Return the wish to append to a dataset."""
    return Intent(
        dataset_id=dataset.id,
        dataset=dataset.name,
        kind="write",
        verb="append",
        build_id=build or uuid.uuid4(),
        writer="api.write",
        pipeline=pipeline,
    )


def one_row(transaction: OpenTransaction) -> Decision:
    """Return the decision that one row was added."""
    return Decision(
        transaction=transaction,
        counts=Counts(1, 1, 0, 0, 0, 0, transaction.parent_row_count + 1),
        next_row_id=transaction.next_row_id + 1,
        next_row_index=transaction.next_row_index + 1,
        rebases=False,
        publishes=False,
    )


def rows(database: Database, statement: str, **parameters: object) -> list[tuple[object, ...]]:
    """Run one statement in a transaction of its own and return its rows."""
    return [tuple(row.values()) for row in database.fetch(sqlalchemy.text(statement), parameters)]


def opened(ledger: Ledger, dataset: DatasetRecord) -> OpenTransaction:
    """Open a transaction on a dataset whose slot is free."""
    transaction = ledger.try_open(intent_on(dataset))
    assert transaction is not None
    return transaction


def expire(database: Database) -> None:
    """Let every lease run out."""
    rows(database, "UPDATE lakeward.leases SET lease_until = clock_timestamp() - interval '1 second'")


def state(database: Database) -> list[tuple[object, ...]]:
    """Return version and status of every transaction, oldest first."""
    return rows(database, "SELECT version, status FROM lakeward.dataset_transactions ORDER BY id")


def head(database: Database) -> tuple[object, ...]:
    """Return the head version and the row count of the first dataset."""
    return rows(database, "SELECT head_version, row_count FROM lakeward.datasets ORDER BY id")[0]
