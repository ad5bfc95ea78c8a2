"""Time travel on every arm: each committed version stays what it was, and `since` gives what came after one."""

from __future__ import annotations

import random
from typing import Any

import pytest

from lakeward.errors import ArmNotCurrent, UnknownObject, UnknownVersion
from lakeward.storage.requests import PreparedVersion
from support.arms import ArmUnderTest, HeldDataset


@pytest.fixture
def dataset(arm: ArmUnderTest) -> HeldDataset:
    return arm.create({"id": "long"})


def ids(dataset: HeldDataset, **request: Any) -> list[int]:
    return [row["id"] for row in dataset.rows(**request)]


def test_every_version_stays_readable_with_its_digest(dataset: HeldDataset, rng: random.Random) -> None:
    model: dict[int, list[int]] = {}
    digests = {}
    content: list[int] = []
    for step in range(12):
        mode = "replace" if rng.random() < 0.3 else "append"
        new = [step * 100 + number for number in range(rng.randrange(1, 5))]
        content = new if mode == "replace" else content + new
        version = dataset.write([{"id": number} for number in new], mode).version
        model[version], digests[version] = list(content), dataset.digest()
    for version in rng.sample(sorted(model), len(model)):
        assert ids(dataset, version=version) == model[version]
        assert dataset.digest(version=version) == digests[version]
        assert digests[version].count == len(model[version])


def test_since_gives_the_rows_written_after_a_version(dataset: HeldDataset) -> None:
    for number in range(1, 6):
        dataset.write([{"id": number}])
    assert ids(dataset, since=0) == [1, 2, 3, 4, 5]
    assert ids(dataset, since=3) == [4, 5]
    assert ids(dataset, since=5) == []
    assert ids(dataset, since=1, version=3) == [2, 3]
    with pytest.raises(UnknownVersion, match="no version 99"):
        ids(dataset, since=99)
    assert ids(dataset, since=2, where="id <> 4") == [3, 5]


def test_since_before_a_replace_gives_the_rows_that_are_still_there(dataset: HeldDataset) -> None:
    dataset.write([{"id": 1}])
    dataset.write([{"id": 2}], "replace")
    dataset.write([{"id": 3}])
    assert ids(dataset, since=0) == [2, 3]
    assert ids(dataset, since=1) == [2, 3]
    assert ids(dataset, since=2) == [3]


def test_unknown_versions_are_refused_by_name(dataset: HeldDataset) -> None:
    with pytest.raises(UnknownVersion):
        dataset.to_arrow(version=1)
    dataset.write([{"id": 1}])
    for version in (0, 2, -1, 2**40):
        with pytest.raises(UnknownVersion, match=f"no committed version {version}; its head is 1"):
            dataset.to_arrow(version=version)
    with pytest.raises(UnknownObject, match="unknown arm 'tape'"):
        dataset.to_arrow(arm="tape")


def test_an_aborted_version_is_unknown(dataset: HeldDataset) -> None:
    dataset.write([{"id": 1}])

    def refuse(prepared: PreparedVersion) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        dataset.write([{"id": 2}], audit=refuse)
    dataset.write([{"id": 3}])
    with pytest.raises(UnknownVersion):
        dataset.to_arrow(version=2)
    assert ids(dataset, version=3) == [1, 3]


def test_a_reader_that_began_before_a_write_sees_its_own_version(dataset: HeldDataset) -> None:
    dataset.write([{"id": number} for number in range(1000)])
    reader = dataset.workspace.storage.read(dataset.record)
    dataset.write([{"id": -1}], "replace")
    assert sum(batch.num_rows for batch in reader) == 1000


def test_an_arm_that_never_held_the_version_is_not_current(dataset: HeldDataset) -> None:
    dataset.write([{"id": 1}])
    for other in dataset.workspace.storage.routing.arms:
        if other != dataset.arm:
            with pytest.raises(ArmNotCurrent, match=f"not current on the {other} arm: that arm never held it"):
                dataset.to_arrow(arm=other)


@pytest.mark.parametrize("mode", ["append", "replace"])
def test_prepared_and_undecided_is_invisible_to_every_reader(dataset: HeldDataset, mode: str) -> None:
    dataset.write([{"id": 1}])
    looked: list[str] = []

    def look(prepared: PreparedVersion) -> None:
        assert ids(dataset) == [1]
        assert ids(dataset, since=0) == [1]
        assert ids(dataset, where="id > 0") == [1]
        assert ids(dataset, version=1) == [1]
        with pytest.raises(UnknownVersion):
            dataset.to_arrow(version=prepared.where.version)
        assert dataset.digest().count == 1
        assert (dataset.version, dataset.record.row_count) == (1, 1)
        looked.append(prepared.arm)

    dataset.write([{"id": 2}], mode, audit=look)
    assert looked == [dataset.arm]
    assert ids(dataset) == ([1, 2] if mode == "append" else [2])
