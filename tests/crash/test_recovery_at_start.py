"""Opening a workspace tidies up what a process that died left, unless that is turned off."""

from __future__ import annotations

import multiprocessing
import os
import signal
from pathlib import Path

import pytest

import lakeward
from lakeward.testing.faults import crash_at
from lakeward.wiring.opening import open_workspace


def _die(home: Path, url: str, arm: str) -> None:
    with open_workspace(home, database_url=url, faults=crash_at("audit"), recover=False) as workspace:
        workspace.create_dataset("main.sales.orders", {"id": "long"}, arm=arm).write([{"id": 1}])
    os._exit(0)


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_opening_finishes_what_is_left(short_tmp: Path, database_url: str, arm: str) -> None:
    child = multiprocessing.get_context("spawn").Process(target=_die, args=(short_tmp / "home", database_url, arm))
    child.start()
    child.join(60)
    assert child.exitcode == -signal.SIGKILL
    with lakeward.open(short_tmp / "home", database_url=database_url) as workspace:
        assert [each.status for each in workspace.transactions()] == ["open"], "turned off for all tests"
    with open_workspace(short_tmp / "home", database_url=database_url, recover=True) as workspace:
        assert [each.status for each in workspace.transactions()] == ["aborted"]
        assert workspace.recover() == []
