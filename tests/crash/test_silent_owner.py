"""An owner that is stopped for longer than its lease is taken over; when it wakes up it is refused and leaves nothing
behind."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from support.covering import covering
from support.crashes import Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]

LEASE_SECONDS = 0.6

CASES = [
    ("postgres", "intent:opened"),
    ("postgres", "prepare"),
    ("postgres", "prepare:copy"),
    ("postgres", "prepare:chunk"),
    ("postgres", "audit"),
    ("postgres", "decide"),
    ("iceberg", "prepare"),
    ("iceberg", "prepare:files"),
    ("iceberg", "prepare:committed"),
    ("iceberg", "decide"),
]


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A settings file with a short lease."""
    path = tmp_path_factory.mktemp("lease") / "lakeward.toml"
    path.write_text(f"[ledger]\nlease_seconds = {LEASE_SECONDS}\n", encoding="utf-8")
    return path


@covering("arm point", "mode")
@pytest.mark.parametrize("mode", ["append", "replace"])
@pytest.mark.parametrize(("arm", "point"), CASES)
def test_a_stopped_owner_is_taken_over_and_refused(
    ws: lakeward.Workspace, driver: Driver, make: Make, settings: Path, arm: str, point: str, mode: str
) -> None:
    dataset = make(arm)
    dataset.write([{"id": 0, "note": "old"}])
    case = {"write": [[dataset.name, mode, 1, 2, "zombie"]], "settings": str(settings)}
    stopped = driver.run(**case, fault=["pause", point, 1])
    assert stopped.event == "stopped"
    dataset.write([{"id": 9, "note": "next"}])
    expected = [(0, "old"), (9, "next")]
    assert content(dataset) == expected
    answer = stopped.wake()
    assert answer.get("error") == "LeaseLost", answer
    assert answer["fields"]["dataset"] == dataset.name
    assert answer["exit_code"] == 6
    assert content(dataset) == expected
    assert unclean(ws, [dataset.name]) == []
    assert [each.status for each in dataset.history()] == ["committed", "aborted", "committed"]


def test_two_outputs_of_a_stopped_owner(ws: lakeward.Workspace, driver: Driver, make: Make, settings: Path) -> None:
    """Only one of its two datasets is taken over; the other one is not committed either."""
    first, second = make("postgres"), make("iceberg")
    outputs = [[first.name, "append", 1, 1, "zombie"], [second.name, "append", 1, 1, "zombie"]]
    stopped = driver.run(write=outputs, settings=str(settings), fault=["pause", "decide", 1])
    assert stopped.event == "stopped"
    second.write([{"id": 9, "note": "next"}])
    assert stopped.wake()["error"] == "LeaseLost"
    ws.recover()
    assert (content(first), content(second)) == ([], [(9, "next")])
    assert unclean(ws, [first.name, second.name]) == []


def test_a_short_stop_does_no_harm(ws: lakeward.Workspace, driver: Driver, make: Make) -> None:
    dataset = make("iceberg")
    stopped = driver.run(write=[[dataset.name, "append", 1, 1, "slow"]], fault=["pause", "decide", 1])
    time.sleep(0.2)
    assert stopped.wake() == {"versions": [1]}
    assert content(dataset) == [(1, "slow")]
    assert unclean(ws, [dataset.name]) == []
