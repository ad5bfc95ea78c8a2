"""A process that flips is stopped as by SIGSTOP, another one takes over, and it wakes up in the middle of that: it can
do no harm, at whatever step either of them is.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakeward
from crash.test_flip_kills import LEASE_SECONDS, assert_stands, filled, flipping, taken_over
from lakeward.migration.directions import direction_to
from lakeward.testing import AtStep
from support.crashes import Driver

Make = Callable[[str], lakeward.Dataset]

WOKEN = [
    # Where the first one is stopped, and where the second one is when it wakes up.
    ("iceberg", "prepare", "audit"),
    ("iceberg", "flip:mirror", "flip:mirrored"),
    ("postgres", "flip:switching", "flip:switching"),
]


@pytest.fixture
def short_lease(tmp_path: Path) -> str:
    """A settings file."""
    path = tmp_path / "lakeward.toml"
    path.write_text(f"[ledger]\nlease_seconds = {LEASE_SECONDS}\n", encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(("to", "stopped_at", "woken_at"), WOKEN)
def test_whoever_wakes_up_takes_nothing_from_who_took_over(
    ws: lakeward.Workspace,
    driver: Driver,
    make: Make,
    short_lease: str,
    crash_url: str,
    crash_warehouse: Path,
    to: str,
    stopped_at: str,
    woken_at: str,
) -> None:
    dataset, rows = filled(make, to)
    stopped = driver.run(**flipping(dataset, "run", to), settings=short_lease, fault=["pause", stopped_at, 1])
    assert stopped.event == "stopped"
    answers: list[dict[str, Any]] = []
    faults = AtStep(woken_at, lambda: answers.append(stopped.wake()), 1)
    with lakeward.open(database_url=crash_url, warehouse=crash_warehouse, faults=faults) as other:
        taken_over(lambda: other.flip(dataset.name).run(to))
    (answer,) = answers
    assert answer.get("error") in ("LeaseLost", "RouteChanged"), answer
    assert dataset.name in answer["message"] and answer["exit_code"] == 6
    assert_stands(ws, dataset, direction_to(to).switched, rows)
