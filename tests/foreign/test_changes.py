"""What changed, across commits of another engine: those that were accepted or adopted, and one that is not ours."""

from __future__ import annotations

from typing import Any

import pytest

from lakeward.errors import Diverged
from support.foreign_scene import Scene, rows


def told(scene: Scene, since: int, version: int | None = None) -> list[tuple[str, int]]:
    found: list[dict[str, Any]] = scene.dataset.changes(since, version).read_all().to_pylist()
    return sorted((each["__op"], each["id"]) for each in found)


def test_of_a_dataset_that_diverged_what_changed_up_to_our_newest_version(scene: Scene) -> None:
    scene.other.delete("id = 2")
    with pytest.raises(Diverged):
        scene.dataset.write(rows(99))
    assert scene.status == "diverged"
    assert told(scene, 1) == [("insert", 3)]
    assert scene.ids(since=1) == [3]


def test_another_engine_s_compaction_is_no_change(scene: Scene) -> None:
    scene.other.compact()
    scene.dataset.write(rows(4))
    assert told(scene, 1) == [("insert", 3), ("insert", 4)]
    assert told(scene, 2) == [("insert", 4)]


def test_adopted_rows_are_changes_of_the_version_that_took_them_in(scene: Scene) -> None:
    scene.other.delete("id = 2")
    deleted = scene.dataset.adopt().version
    assert told(scene, 2, deleted) == told(scene, 2) == [("delete", 2)]
    assert told(scene, 1) == [("delete", 2), ("insert", 3)]


def test_adopted_rows_that_claim_to_be_old_are_inserted_all_the_same(scene: Scene) -> None:
    """Reading rows since a version goes by what they claim; comparing versions goes by what was there."""
    known = max(scene.other.rows(), key=lambda row: row["__row_id"])
    scene.other.append({"id": 9, "__row_id": known["__row_id"] + 1, "__row_index": 9, "__version": 1})
    assert scene.dataset.adopt().rows_added == 1
    assert scene.ids(since=2) == []
    assert told(scene, 2) == [("insert", 9)]
