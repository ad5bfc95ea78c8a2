"""What an output has read is recorded by the decide that makes its rows visible, and by nothing else, on every arm."""

from __future__ import annotations

from dataclasses import replace

import pytest

from lakeward.control.last_writes import LastWrite, LastWrites
from lakeward.control.records import Window
from lakeward.storage.requests import Output, PreparedVersion
from support.arms import ArmUnderTest, HeldDataset

COLUMNS = {"id": "long"}


def last(dataset: HeldDataset) -> LastWrite | None:
    return LastWrites(dataset.workspace.database).of([dataset.created.id]).get(dataset.created.id)


def reading(dataset: HeldDataset, sources: dict[HeldDataset, int], fingerprint: str) -> Output:
    """Return an output of one row that says which versions it read."""
    windows = {source.created.id: Window(0, version) for source, version in sources.items()}
    return replace(dataset.output([{"id": 1}], "replace"), windows=windows, fingerprint=fingerprint)


def build(*outputs: Output, arm: ArmUnderTest) -> None:
    arm.workspace.storage.protocol.run(list(outputs), writer="conformance", arm=arm.name)


def test_i03_watermarks_move_with_the_commit_and_not_before(arm: ArmUnderTest) -> None:
    source, other, output = (arm.create(COLUMNS) for _ in range(3))
    source.write([{"id": 1}])
    seen: list[LastWrite | None] = []

    def look(_: PreparedVersion) -> None:
        seen.append(last(output))

    build(replace(reading(output, {source: 1}, "f"), audit=look), arm=arm)
    first = last(output)
    assert seen == [None]
    assert first is not None
    assert (first.version, first.fingerprint, first.watermarks) == (1, "f", {source.created.id: 1})
    build(replace(reading(output, {source: 7, other: 3}, "g"), audit=look), arm=arm)
    assert seen == [None, first]
    second = last(output)
    assert second is not None
    assert (second.version, second.fingerprint) == (2, "g")
    assert second.watermarks == {source.created.id: 7, other.created.id: 3}


def test_i03_a_refused_build_moves_no_watermark_of_any_of_its_outputs(arm: ArmUnderTest) -> None:
    source, one, two = (arm.create(COLUMNS) for _ in range(3))
    build(reading(one, {source: 1}, "f"), reading(two, {source: 1}, "f"), arm=arm)
    before = [last(one), last(two)]

    def refuse(_: PreparedVersion) -> None:
        raise ValueError("refused")

    with pytest.raises(ValueError, match="refused"):
        build(reading(one, {source: 2}, "f"), replace(reading(two, {source: 2}, "f"), audit=refuse), arm=arm)
    assert [last(one), last(two)] == before


def test_a_copy_moves_no_watermark_and_is_no_write(lasting: ArmUnderTest) -> None:
    source, output = lasting.create(COLUMNS), lasting.create(COLUMNS)
    build(reading(output, {source: 4}, "f"), arm=lasting)
    before = last(output)
    [target] = {"postgres", "iceberg"} - {lasting.name}
    lasting.workspace.storage.copy(output.record, target)
    assert output.version == 2
    assert last(output) == before


def test_a_write_by_hand_reads_nothing(arm: ArmUnderTest) -> None:
    source, output = arm.create(COLUMNS), arm.create(COLUMNS)
    build(reading(output, {source: 4}, "f"), arm=arm)
    output.write([{"id": 2}])
    found = last(output)
    assert found is not None and (found.version, found.fingerprint, found.watermarks) == (2, None, {})


def test_i02_a_build_without_rows_moves_the_watermark_and_no_row(arm: ArmUnderTest) -> None:
    """Otherwise every later build would read the same versions again."""
    source, output = arm.create(COLUMNS), arm.create(COLUMNS)
    build(reading(output, {source: 1}, "f"), arm=arm)
    before = output.rows(identity=True)
    nothing = replace(output.output([]), windows={source.created.id: Window(1, 5)}, fingerprint="f")
    build(nothing, arm=arm)
    found = last(output)
    assert found is not None and (found.version, found.watermarks) == (2, {source.created.id: 5})
    assert output.rows(identity=True) == before
    assert output.rows(identity=True, version=1) == before
    assert output.leftovers() == {}
    output.write([{"id": 2}])
    assert [row["id"] for row in output.rows()] == [1, 2], "the next write goes on from there"
    assert [row["id"] for row in output.rows(version=2)] == [1]


def test_a_first_build_without_rows_is_no_version(arm: ArmUnderTest) -> None:
    source, output = arm.create(COLUMNS), arm.create(COLUMNS)
    build(replace(output.output([]), windows={source.created.id: Window(0, 5)}, fingerprint="f"), arm=arm)
    assert (output.version, last(output)) == (0, None)
