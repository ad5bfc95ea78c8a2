"""Where datasets stand, and what a recovery would look at."""

from __future__ import annotations

import uuid

import lakeward
from lakeward.control.records import Intent


def test_status_follows_copies_and_writes(workspace: lakeward.Workspace) -> None:
    dataset = workspace.create_dataset("a.b.c", {"id": "long"})
    assert dataset.status().holders == ()
    dataset.write([{"id": 1}])
    assert dataset.status().holders == ("postgres",)
    dataset.copy_to("iceberg")
    assert dataset.status().holders == ("postgres", "iceberg")
    dataset.write([{"id": 2}])
    [status] = workspace.status()
    assert (status.holders, status.version, status.row_count, status.status) == (("postgres",), 3, 2, "ok")
    assert status.freshness == workspace.replication.freshness(dataset.record) == {"iceberg": 2, "postgres": 3}


def test_recoverable_takes_nothing_over(workspace: lakeward.Workspace) -> None:
    dataset = workspace.create_dataset("a.b.c", {"id": "long"})
    assert workspace.recoverable() == []
    intent = Intent(dataset.record.id, "a.b.c", "write", "append", uuid.uuid4(), writer="test")
    opened = workspace.ledger.try_open(intent)
    assert opened is not None
    for _ in range(2):
        [left] = workspace.recoverable()
        assert (left.dataset, left.status, left.held) == ("a.b.c", "open", True)
    assert workspace.ledger.status(opened) == "open"
