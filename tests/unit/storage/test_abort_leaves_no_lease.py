"""What can't be removed now is left to recovery, which need not wait for the lease of a process that lives."""

from __future__ import annotations

import pytest

import lakeward
from lakeward.errors import CatalogError, StorageError, ValueRefused
from lakeward.storage.arm import StorageArm


def _unable(*_: object) -> None:
    raise CatalogError("the catalog is down")


def test_a_discard_that_fails_lets_go_of_the_slot(
    workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = workspace.create_dataset("main.sales.orders", {"id": "long"}, arm="iceberg")
    other = workspace.create_dataset("main.sales.other", {"id": "long"}, arm="postgres")
    arm: StorageArm = workspace.storage.routing.arm("iceberg")
    with monkeypatch.context() as trouble:
        trouble.setattr(arm, "discard", _unable)
        with pytest.raises(ValueRefused):
            dataset.write(row for row in [{"id": 1}, {"id": "two"}])
        assert [each.status for each in dataset.history()] == ["open"]
        with pytest.raises(StorageError, match="the catalog is down"):
            workspace.recover()
        with pytest.raises(StorageError, match="the catalog is down"):
            workspace.recover()
        assert other.write([{"id": 1}]).committed, "trouble of one arm stops no other dataset"
    assert [each.outcome for each in workspace.recover()] == ["aborted"]
    assert dataset.write([{"id": 1}]).row_count == 1
