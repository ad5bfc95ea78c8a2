"""A process is killed, stopped or raced while it flips a dataset: whoever goes on gets the same rows, and a sane route.

Readers are served all the time, a write in between is not lost, and nothing is left over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.errors import ConflictError
from lakeward.migration.directions import direction_to
from lakeward.migration.options import Limits
from support.arms import stored_versions
from support.crashes import Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]
Rows = list[tuple[int, str]]

LEASE_SECONDS = 0.6

RUNS = [
    ("iceberg", "prepare:files"),
    ("iceberg", "flip:backfill:ran"),
    ("iceberg", "publish:moved"),
    ("iceberg", "flip:mirrored"),
    ("iceberg", "flip:switching"),
    ("postgres", "prepare:chunk"),
    ("postgres", "flip:verify:ran"),
    ("postgres", "flip:switch:ran"),
]
"""At the bounds of stages and inside them, on the way to the switch."""

ENDS = [
    ("iceberg", "complete", "flip:final"),
    ("iceberg", "complete", "maintain:rows"),
    ("postgres", "complete", "flip:complete:ran"),
    ("iceberg", "cancel", "maintain:emptied"),
    ("postgres", "cancel", "maintain:rows"),
]
"""While a flip is ended, one way or the other."""


def flipping(dataset: lakeward.Dataset, act: str, to: str) -> dict[str, Any]:
    """Return the driver's case."""
    how = {"run": {"to": to}, "complete": {"confirm": dataset.name}, "cancel": {}}[act]
    return {"flip": act, "dataset": dataset.name, "how": how}


def filled(make: Make, to: str) -> tuple[lakeward.Dataset, Rows]:
    dataset = make(direction_to(to).source)
    rows = [(number, "old") for number in range(6)]
    dataset.write([{"id": number, "note": note} for number, note in rows])
    return dataset, rows


def written_between(dataset: lakeward.Dataset, rows: Rows) -> Rows:
    assert sorted(content(dataset)) == rows
    dataset.write([{"id": 50, "note": "between"}], mode="upsert")
    return [*rows, (50, "between")]


def assert_stands(ws: lakeward.Workspace, dataset: lakeward.Dataset, mode: str, rows: Rows) -> None:
    """Check route and rows, on each arm that has a part to play, and that nothing is left over."""
    route = dataset.record.route
    assert route.mode == mode
    for arm in filter(None, (route.primary_arm, route.mirror_arm)):
        assert sorted(content(dataset, arm)) == rows, arm
    dataset.write([{"id": 99, "note": "next"}], mode="upsert")
    assert sorted(content(dataset)) == [*rows, (99, "next")]
    assert unclean(ws, [dataset.name]) == []


@pytest.mark.parametrize(("to", "point"), RUNS)
def test_a_flip_that_was_killed_goes_on(
    ws: lakeward.Workspace, driver: Driver, make: Make, to: str, point: str
) -> None:
    dataset, rows = filled(make, to)
    died = driver.run(**flipping(dataset, "run", to), fault=["crash", point, 1])
    assert died.killed(), died.event
    rows = written_between(dataset, rows)
    ws.flip(dataset.name).run(to)
    assert_stands(ws, dataset, direction_to(to).switched, rows)


@pytest.mark.parametrize(("to", "act", "point"), ENDS)
def test_the_end_of_a_flip_that_was_killed_is_repeated(
    ws: lakeward.Workspace, driver: Driver, make: Make, to: str, act: str, point: str
) -> None:
    dataset, rows = filled(make, to)
    flip = ws.flip(dataset.name)
    flip.run(to)
    died = driver.run(**flipping(dataset, act, to), fault=["crash", point, 1])
    assert died.killed(), died.event
    rows = written_between(dataset, rows)
    getattr(flip, act)(**flipping(dataset, act, to)["how"])
    direction = direction_to(to)
    assert flip.status().outcome == {"complete": "completed", "cancel": "cancelled"}[act]
    assert_stands(ws, dataset, direction.final if act == "complete" else direction.alone, rows)
    if dataset.record.route.mode == "iceberg_native":
        assert stored_versions(ws, dataset.record.id) == []


def test_a_flip_goes_on_from_what_a_killed_cancel_left(ws: lakeward.Workspace, driver: Driver, make: Make) -> None:
    """The copy is half gone: it is no mirror to go on from, and is brought anew."""
    dataset, rows = filled(make, "postgres")
    ws.flip(dataset.name).run("postgres", until="verify")
    assert driver.run(**flipping(dataset, "cancel", "postgres"), fault=["crash", "maintain:rows", 1]).killed()
    assert ws.replication.freshness(dataset.record)["postgres"] is None
    rows = written_between(dataset, rows)
    ws.flip(dataset.name).run("postgres")
    assert_stands(ws, dataset, "dual", rows)


@pytest.mark.parametrize(
    ("to", "point"), [("iceberg", "maintain:emptied"), ("iceberg", "prepare:files"), ("postgres", "maintain:rows")]
)
def test_a_new_copy_that_was_killed_is_made_anew(
    ws: lakeward.Workspace, driver: Driver, make: Make, to: str, point: str
) -> None:
    """Before the old copy is gone, in the middle of that, and while the new one is written."""
    dataset, rows = filled(make, to)
    ws.flip(dataset.name).run(to, until="mirror")
    mode = dataset.record.route.mode
    assert driver.run(resync=dataset.name, fault=["crash", point, 1]).killed()
    assert ws.replication.freshness(dataset.record)[to] is None
    rows = written_between(dataset, rows)
    # The mode from before the kill is not forgotten.
    assert ws.comparisons.resync(dataset.name)["mode"] == mode
    assert_stands(ws, dataset, mode, rows)


def test_a_watch_that_was_killed_goes_on_and_puts_the_flags_back(
    ws: lakeward.Workspace, driver: Driver, make: Make
) -> None:
    dataset, rows = filled(make, "iceberg")
    flip = ws.flip(dataset.name)
    flip.run("iceberg", until="mirror")
    limits = {"seconds": 0.01, "min_reads": 2}
    assert driver.run(watch=dataset.name, limits=limits, fault=["crash", "flip:watching", 1]).killed()
    assert {each.value for each in ws.flags.list() if each.dataset == dataset.name} == {"shadow"}
    rows = written_between(dataset, rows)
    found, switched = flip.canary(Limits(**limits))
    # What was read before the kill counts.
    assert (found.details["mismatches"], switched.stage) == (0, "switch") and found.details["reads"] >= 2
    assert [each for each in ws.flags.list() if each.dataset == dataset.name] == []
    assert_stands(ws, dataset, "iceberg_dual", rows)


def test_of_two_at_once_one_wins(ws: lakeward.Workspace, driver: Driver, make: Make) -> None:
    dataset, rows = filled(make, "iceberg")
    first = driver.run(**flipping(dataset, "run", "iceberg"), fault=["pause", "flip:mirrored", 1])
    assert first.event == "stopped"
    second = driver.run(**flipping(dataset, "run", "iceberg")).answer()
    assert (second["error"], second["exit_code"]) == ("Contended", 6)
    assert dataset.name in second["message"] and f"pid {first.pid}" in second["message"]
    assert "error" not in first.wake()
    assert_stands(ws, dataset, "iceberg_dual", rows)


@pytest.mark.parametrize(
    ("to", "act", "point", "refused"),
    [
        ("postgres", "run", "flip:mirror", "LeaseLost"),
        ("iceberg", "run", "flip:switching", "RouteChanged"),
        ("iceberg", "complete", "flip:final", "LeaseLost"),
    ],
)
def test_an_owner_that_wakes_up_late_changes_nothing(
    ws: lakeward.Workspace, driver: Driver, make: Make, tmp_path: Path, to: str, act: str, point: str, refused: str
) -> None:
    """Another one has completed the flip, and begun the one back, when it wakes up."""
    settings = tmp_path / "lakeward.toml"
    settings.write_text(f"[ledger]\nlease_seconds = {LEASE_SECONDS}\n", encoding="utf-8")
    dataset, rows = filled(make, to)
    flip, direction = ws.flip(dataset.name), direction_to(to)
    if act == "complete":
        flip.run(to)
    stopped = driver.run(**flipping(dataset, act, to), settings=str(settings), fault=["pause", point, 1])
    assert stopped.event == "stopped"
    taken_over(lambda: flip.run(to))
    flip.complete(confirm=dataset.name)
    flip.run(direction.source, until="verify")
    answer = stopped.wake()
    assert answer.get("error") == refused, answer
    assert dataset.name in answer["message"]
    # Neither is the route another one, nor the copy gone, nor the flip back ended.
    assert dataset.record.route.mode == direction.final
    assert flip.status().outcome is None
    assert sorted(content(dataset, direction.source)) == rows
    flip.run(direction.source)
    assert_stands(ws, dataset, direction.mirrored, rows)


def taken_over(act: Callable[[], object]) -> None:
    """Do something as soon as the stopped owner's lease has run out."""
    deadline = time.monotonic() + 30
    while True:
        try:
            act()
            return
        except ConflictError:
            assert time.monotonic() < deadline
