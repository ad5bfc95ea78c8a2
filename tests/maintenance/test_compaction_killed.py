"""A compaction is killed at each step: after recovery the rows are the same, and the next compaction goes through."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

import lakeward
from lakeward.storage import protocol
from lakeward.testing import AtStep
from support.compaction import CALM, compaction_settings
from support.crashes import Driver, content, unclean

Compacting = Callable[..., lakeward.Workspace]

POINTS = (
    "intent",
    "intent:opened",
    "compute",
    "prepare",
    "prepare:files",
    "prepare:committed",
    "audit",
    "decide",
    "decide:committed",
    "publish",
    "publish:moved",
    "maintain:compacted",
)
STANDS = POINTS[POINTS.index(protocol.COMMITTED_FROM) :]
_numbers = itertools.count(1)


def worn(ws: lakeward.Workspace) -> lakeward.Dataset:
    dataset = ws.create_dataset(
        f"main.killed.d{next(_numbers)}", {"id": "long", "note": "string"}, ["id"], arm="iceberg"
    )
    dataset.write([{"id": number, "note": "old"} for number in range(50)])
    for number in range(8):
        dataset.write([{"id": number, "note": "new"}], mode="upsert")
    return dataset


def test_the_points_are_all_that_a_compaction_passes(compacting: Compacting) -> None:
    dataset = worn(compacting("manual"))
    faults = AtStep("never", lambda: None)
    assert len(compacting("manual", faults).maintain(dataset.name, older_than=CALM).compacted) == 1
    passed = tuple(dict.fromkeys(faults.seen))
    assert passed[: len(POINTS)] == POINTS


@pytest.mark.parametrize("point", POINTS)
def test_killed_at_a_step(compacting: Compacting, driver: Driver, kept_root: Path, point: str) -> None:
    ws = compacting("manual")
    dataset = worn(ws)
    rows, digest, head = content(dataset), dataset.digest(), dataset.record.head_version
    settings = {"settings": str(compaction_settings(kept_root, "manual"))}
    assert driver.run(maintain=[dataset.name], older_than=CALM, fault=["crash", point, 1], **settings).killed()
    assert content(dataset) == rows and dataset.digest() == digest, "readers wait for nobody"
    assert dataset.record.head_version == head + (point in STANDS)
    if POINTS.index(point) % 2:
        driver.run(recover=True, **settings).answer()
        assert unclean(ws, [dataset.name]) == []
    answer = driver.run(maintain=[dataset.name], older_than=CALM, **settings).answer()
    assert answer["failures"] == [] and len(answer["compacted"]) == (point not in STANDS)
    assert content(dataset) == rows and dataset.digest() == digest and dataset.verify().equal
    assert [each.verb for each in dataset.history() if each.status == "committed"].count("compact") == 1
    assert unclean(ws, [dataset.name]) == []
    dataset.write([{"id": 100, "note": "next"}])
    assert content(dataset) == [*rows, (100, "next")]


def test_full_disk(compacting: Compacting, driver: Driver, kept_root: Path) -> None:
    ws = compacting("manual")
    dataset = ws.create_dataset("main.killed.full", {"id": "long", "note": "string"}, ["id"], arm="iceberg")
    for number in range(6):
        dataset.write(
            [{"id": row, "note": f"{row * 7919 % 100_003}"} for row in range(number * 4_000, number * 4_000 + 4_000)]
        )
    rows = content(dataset)
    settings = {"settings": str(compaction_settings(kept_root, "manual"))}
    answer = driver.run(maintain=[dataset.name], older_than=CALM, file_limit=60_000, **settings).answer()
    assert answer["compacted"] == [] and "no space left" in answer["failures"][0]["error"]
    assert content(dataset) == rows and unclean(ws, [dataset.name]) == []
    assert len(ws.maintain(dataset.name, older_than=CALM).compacted) == 1
    assert content(dataset) == rows
