"""A process is killed at every step of a write: afterwards a dataset is as before or as after it, never a mixture.

The promise is the first of the design's: after recovery every dataset equals the content of some prefix of its
committed versions. C01: no row is lost, none is there twice, whatever the process had done when it died.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.storage import protocol
from lakeward.storage.requests import Output
from lakeward.testing import AtStep
from lakeward.types.conform import to_reader
from support.covering import covering
from support.crashes import Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]

NOT_THERE = {
    "postgres": ("prepare:files", "prepare:deletes", "prepare:committed", "publish", "publish:moved"),
    "iceberg": ("prepare:copy", "prepare:chunk", "prepare:deletes"),
}
"""Points that a write to the arm does not pass."""

POINTS = {arm: tuple(point for point in protocol.POINTS if point not in NOT_THERE[arm]) for arm in NOT_THERE}

COMMITTED = protocol.POINTS[protocol.POINTS.index(protocol.COMMITTED_FROM) :]
"""From here on the write stands."""

OTHER = {"postgres": "iceberg", "iceberg": "postgres"}
CASES = [(arm, point, mode) for arm in POINTS for point in POINTS[arm] for mode in ("append", "replace", "copy")]


def rows(first: int, count: int, text: str) -> list[tuple[int, str]]:
    return [(number, text) for number in range(first, first + count)]


def fill(dataset: lakeward.Dataset, expected: list[tuple[int, str]]) -> None:
    dataset.write([{"id": number, "note": note} for number, note in expected])


@pytest.mark.parametrize("arm", POINTS)
def test_the_points_are_all_that_a_write_passes(crash_url: str, crash_warehouse: object, make: Make, arm: str) -> None:
    dataset = make(arm)
    faults = AtStep("never", lambda: None)
    with lakeward.open(database_url=crash_url, warehouse=str(crash_warehouse), faults=faults) as workspace:
        workspace.dataset(dataset.name).write([{"id": 1, "note": "a"}])
    assert tuple(dict.fromkeys(faults.seen)) == POINTS[arm]


@covering("arm point", "arm mode")
@pytest.mark.parametrize(("arm", "point", "mode"), CASES)
def test_old_or_new(ws: lakeward.Workspace, driver: Driver, make: Make, arm: str, point: str, mode: str) -> None:
    dataset = make(OTHER[arm] if mode == "copy" else arm)
    old = rows(0, 5, "old")
    fill(dataset, old)
    new = {"append": old + rows(5, 3, "new"), "replace": rows(5, 3, "new"), "copy": old}[mode]
    if mode == "copy":
        died = driver.run(copy=dataset.name, to=arm, fault=["crash", point, 1])
    else:
        died = driver.run(write=[[dataset.name, mode, 5, 3, "new"]], fault=["crash", point, 1])
    assert died.killed(), died.event
    stands = point in COMMITTED
    # Readers never wait for recovery, and never see anything else.
    assert content(dataset) == (new if stands else old)

    # In turn: recovery on request, and the recovery that comes before every write.
    if CASES.index((arm, point, mode)) % 2:
        outcome = {True: "published", False: "aborted"}[stands]
        nothing = point == "intent" or (arm, point) == ("postgres", "decide:committed")
        expected = [] if nothing else [[dataset.name, 2, outcome]]
        assert driver.run(recover=True).answer() == {"recovered": expected}
        assert driver.run(recover=True).answer() == {"recovered": []}
        assert unclean(ws, [dataset.name]) == []
        assert content(dataset) == (new if stands else old)
    answer = driver.run(write=[[dataset.name, "append", 100, 1, "next"]]).answer()
    assert "versions" in answer, answer
    assert content(dataset) == (new if stands else old) + rows(100, 1, "next")
    assert unclean(ws, [dataset.name]) == []
    assert ws.recover() == []


@covering("arm point", "arm mode")
@pytest.mark.parametrize("arm", POINTS)
@pytest.mark.parametrize("mode", ["append", "replace"])
@pytest.mark.parametrize("point", ["intent:opened", "prepare", "decide", "decide:committed"])
def test_a_first_write(ws: lakeward.Workspace, driver: Driver, make: Make, arm: str, mode: str, point: str) -> None:
    dataset = make(arm)
    assert driver.run(write=[[dataset.name, mode, 0, 3, "new"]], fault=["crash", point, 1]).killed()
    expected = rows(0, 3, "new") if point in COMMITTED else []
    assert content(dataset) == expected
    driver.run(recover=True).answer()
    assert unclean(ws, [dataset.name]) == []
    assert content(dataset) == expected
    assert "versions" in driver.run(write=[[dataset.name, mode, 9, 1, "next"]]).answer()
    assert content(dataset) == (expected if mode == "append" else []) + rows(9, 1, "next")


@pytest.mark.parametrize("occurrence", [1, 2, 3])
def test_between_the_chunks_of_a_long_write(
    ws: lakeward.Workspace, driver: Driver, make: Make, occurrence: int
) -> None:
    dataset = make("postgres")
    fill(dataset, rows(0, 2, "old"))
    case = {"write": [[dataset.name, "append", 2, 200_000, "new"]], "fault": ["crash", "prepare:chunk", occurrence]}
    assert driver.run(**case).killed()
    assert content(dataset) == rows(0, 2, "old")
    assert driver.run(recover=True).answer()["recovered"] == [[dataset.name, 2, "aborted"]]
    assert unclean(ws, [dataset.name]) == []


TWO = [
    (point, occurrence) for point in ("intent", "intent:opened", "compute", "prepare", "audit") for occurrence in (1, 2)
] + [
    (point, 1)
    for point in ("prepare:copy", "prepare:chunk", "prepare:files", "prepare:committed", "decide", *COMMITTED)
]


@covering("point occurrence", "order")
@pytest.mark.parametrize("order", ["postgres first", "iceberg first"])
@pytest.mark.parametrize(("point", "occurrence"), TWO)
def test_two_outputs_together_or_not_at_all(
    ws: lakeward.Workspace, driver: Driver, make: Make, point: str, occurrence: int, order: str
) -> None:
    arms = ("postgres", "iceberg") if order == "postgres first" else ("iceberg", "postgres")
    datasets = [make(arm) for arm in arms]
    names = [dataset.name for dataset in datasets]
    fill(datasets[0], rows(0, 2, "old"))
    fill(datasets[1], rows(0, 2, "old"))
    outputs = [[names[0], "append", 2, 2, "new"], [names[1], "replace", 2, 2, "new"]]
    assert driver.run(write=outputs, fault=["crash", point, occurrence]).killed()
    old = [rows(0, 2, "old"), rows(0, 2, "old")]
    new = [rows(0, 2, "old") + rows(2, 2, "new"), rows(2, 2, "new")]
    expected = new if point in COMMITTED else old
    assert [content(dataset) for dataset in datasets] == expected
    driver.run(recover=True).answer()
    assert unclean(ws, names) == []
    assert [content(dataset) for dataset in datasets] == expected
    assert driver.run(recover=True).answer() == {"recovered": []}


def test_a_build_that_is_repeated_after_a_crash_writes_once(ws: lakeward.Workspace, driver: Driver, make: Make) -> None:
    """C01: killed before decide, the rows are not there, and the repeated write brings them once."""
    dataset = make("iceberg")
    for point in ("prepare:committed", "decide"):
        assert driver.run(write=[[dataset.name, "append", 0, 3, "once"]], fault=["crash", point, 1]).killed()
    record = dataset.record
    output = Output(record, "append", lambda: to_reader([{"id": 0, "note": "once"}], record.schema, dataset="d"))
    ws.storage.build([output], writer="crash")
    assert content(dataset) == rows(0, 1, "once")
    assert unclean(ws, [dataset.name]) == []
