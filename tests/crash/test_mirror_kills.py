"""A process is killed while it writes to both arms, brings one up to the other, or changes the route: nothing is torn.

Afterwards a dataset is as before or as after it, on whichever arm, and the next write is on both of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.storage import protocol
from lakeward.storage.mirror_step import MIRROR_POINTS
from support.arms import copied
from support.crashes import Driver, content, unclean

Make = Callable[[str], lakeward.Dataset]

MODES = {"dual": ("postgres", "iceberg"), "iceberg_dual": ("iceberg", "postgres")}
COMMITTED = protocol.POINTS[protocol.POINTS.index(protocol.COMMITTED_FROM) :]

WRITES = [
    ("dual", "prepare:chunk", 1),
    ("dual", "mirror", 1),
    ("dual", "prepare:deletes", 1),
    ("dual", "prepare:files", 1),
    ("dual", "prepare:committed", 1),
    *((mode, "mirror:prepared", 1) for mode in MODES),
    *((mode, point, 1) for mode in MODES for point in ("decide", "decide:committed", "publish:moved")),
    ("iceberg_dual", "mirror", 1),
    ("iceberg_dual", "prepare:marked", 1),
    ("iceberg_dual", "prepare:copy", 1),
    ("iceberg_dual", "prepare:chunk", 1),
]


def test_all_points_of_the_mirror_are_killed_at() -> None:
    assert set(MIRROR_POINTS) <= {point for _, point, _ in WRITES}


def mirrored(ws: lakeward.Workspace, make: Make, mode: str) -> tuple[lakeward.Dataset, list[tuple[int, str]]]:
    dataset = make(MODES[mode][0])
    ws.replication.reroute(dataset.record, mode)
    old = [(number, "old") for number in range(6)]
    dataset.write([{"id": number, "note": note} for number, note in old])
    return dataset, old


def assert_both(ws: lakeward.Workspace, dataset: lakeward.Dataset, expected: list[tuple[int, str]]) -> None:
    assert unclean(ws, [dataset.name]) == []
    for arm in ("postgres", "iceberg"):
        assert sorted(content(dataset, arm)) == sorted(expected), arm
    assert set(dataset.verify().digests) == {"postgres", "iceberg"}


@pytest.mark.parametrize(("mode", "point", "occurrence"), WRITES)
def test_a_mirrored_write_is_on_both_arms_or_on_none(
    ws: lakeward.Workspace, driver: Driver, make: Make, mode: str, point: str, occurrence: int
) -> None:
    dataset, old = mirrored(ws, make, mode)
    died = driver.run(write=[[dataset.name, "upsert", 3, 6, "new"]], fault=["crash", point, occurrence])
    assert died.killed(), died.event
    new = old[:3] + [(number, "new") for number in range(3, 9)]
    stands = point in COMMITTED
    assert sorted(content(dataset)) == (new if stands else old)
    ws.recover()
    assert_both(ws, dataset, new if stands else old)
    dataset.write([{"id": 100, "note": "next"}], mode="upsert")
    assert_both(ws, dataset, [*(new if stands else old), (100, "next")])


BROUGHT = [
    (bring, to, point)
    for bring in ("backfill", "catch_up")
    for to, points in (
        ("iceberg", ("intent:opened", "prepare:files", "prepare:committed", "decide:committed")),
        ("postgres", ("prepare:chunk", "decide")),
    )
    for point in points
]


@pytest.mark.parametrize(("bring", "to", "point"), BROUGHT)
def test_bringing_a_version_to_the_other_arm(
    ws: lakeward.Workspace, driver: Driver, make: Make, bring: str, to: str, point: str
) -> None:
    source = {"postgres": "iceberg", "iceberg": "postgres"}[to]
    dataset = make(source)
    rows = [(number, "old") for number in range(6)]
    dataset.write([{"id": number, "note": note} for number, note in rows])
    if bring == "catch_up":
        copied(ws, dataset.record, to)
        dataset.write([{"id": number, "note": "new"} for number in range(4, 8)], mode="upsert")
        rows = rows[:4] + [(number, "new") for number in range(4, 8)]
    assert driver.run(bring=bring, dataset=dataset.name, to=to, fault=["crash", point, 1]).killed()
    assert sorted(content(dataset)) == rows
    ws.recover()
    assert unclean(ws, [dataset.name]) == []
    assert sorted(content(dataset)) == rows
    # Whatever had become of it: once more, and it is there; and writes in between are not lost.
    dataset.write([{"id": 50, "note": "between"}], mode="upsert")
    copied(ws, dataset.record, to)
    ws.replication.catch_up(dataset.record, to)
    assert_both(ws, dataset, [*rows, (50, "between")])
