"""Canaries: both arms are read as readers do before the other one serves; a watch promotes, or stops and says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import lakeward
from lakeward.errors import ConflictError, LeaseLost, ParityMismatch, UsageError
from lakeward.migration import reading
from lakeward.migration.options import Limits
from lakeward.storage.requests import ReadRequest
from lakeward.testing import AtStep, FakeClock
from support.arms import ArmUnderTest, HeldDataset

WHILE = Limits(8, max_latency_ratio=1e9)


@pytest.fixture
def mirrored(shared: lakeward.Workspace) -> HeldDataset:
    """A dataset on Postgres that is being flipped to Iceberg, and mirrored."""
    held = ArmUnderTest(shared, "postgres").create({"id": "long", "note": "string"}, ["id"])
    held.write([{"id": number, "note": f"row {number}"} for number in range(30)])
    shared.flip(held.created.name).run("iceberg", until="mirror")
    return held


@pytest.fixture
def watching(shared: lakeward.Workspace, shared_url: str, mirrored: HeldDataset) -> Any:
    """Opens the workspace with a clock that a test moves, for one watch, with something that happens in it."""

    def run(limits: Limits, action: Callable[[], None] = lambda: None, at: int = 2, promote: bool = True) -> Any:
        clock, faults = FakeClock(), AtStep("flip:watching", action, at)
        warehouse = shared.settings.values.warehouse
        with lakeward.open(database_url=shared_url, warehouse=warehouse, clock=clock, faults=faults) as other:
            steps = other.flip(mirrored.created.name).canary(limits, promote=promote)
        return steps, clock, faults.seen.count("flip:watching")

    return run


def flags(held: HeldDataset) -> list[str]:
    name = held.created.name
    return [each.name for each in held.workspace.flags.list() if each.dataset == name]


def test_the_smoke_check_reads_both_arms(mirrored: HeldDataset) -> None:
    flip = mirrored.workspace.flip(mirrored.created.name)
    step = flip.stage("canary")
    assert step.details["reads"] == 4
    # All rows, those of the newest write, a third of the positions, one column of two.
    assert step.details["rows"] == 30 + 30 + 10 + 30
    assert {check.details["what"].split()[0] for check in flip._rooms.parity.newest(mirrored.created.id, "read")} == {
        "all",
        "rows",
        "columns",
    }


def test_of_a_large_dataset_a_part_is_read(mirrored: HeldDataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_ROWS", 6)
    step = mirrored.workspace.flip(mirrored.created.name).stage("canary")
    assert (step.details["reads"], step.details["rows"]) == (4, 4 * 6)


def test_a_difference_stops_the_flip(mirrored: HeldDataset) -> None:
    spoil(mirrored)
    flip = mirrored.workspace.flip(mirrored.created.name)
    with pytest.raises(ParityMismatch, match="both arms were read") as refused:
        flip.run()
    assert refused.value.safe == "the postgres arm serves as before"
    assert mirrored.record.route.mode == "dual"
    with pytest.raises(ParityMismatch):
        flip.stage("switch")


def test_a_watch_promotes(mirrored: HeldDataset, watching: Any) -> None:
    seen: list[list[str]] = []
    steps, clock, reads = watching(WHILE, lambda: seen.append(flags(mirrored)))
    assert [step.stage for step in steps] == ["canary", "switch"]
    assert mirrored.record.route.mode == "iceberg_dual"
    assert "api.read" in seen[0] and "pipelines.source" in seen[0]
    assert flags(mirrored) == []
    assert (steps[0].details["reads"], steps[0].details["mismatches"]) == (reads, 0)
    assert 6 < sum(clock.slept) <= 8 and reads > 4


def test_a_watch_that_finds_a_difference_stops_at_once(mirrored: HeldDataset, watching: Any) -> None:
    with pytest.raises(ParityMismatch, match="1 comparisons found that the arms differ; 0 may") as stopped:
        watching(WHILE, lambda: spoil(mirrored), at=2)
    assert "nothing was switched; the postgres arm serves the dataset" in str(stopped.value)
    assert (mirrored.record.route.mode, flags(mirrored)) == ("dual", [])


def test_a_slow_arm_is_refused_and_one_that_serves_already_is_reverted(mirrored: HeldDataset, watching: Any) -> None:
    with pytest.raises(ConflictError, match="times as long"):
        watching(Limits(2, max_latency_ratio=1e-9))
    assert mirrored.record.route.mode == "dual"
    flip = mirrored.workspace.flip(mirrored.created.name)
    flip.run()
    with pytest.raises(ConflictError, match="reads were compared; 1,000 are needed") as stopped:
        watching(Limits(2, min_reads=1000))
    assert stopped.value.safe == "set mode dual: the postgres arm serves again"
    assert mirrored.record.route.mode == "dual"
    assert [each.event for each in flip.status().events[-2:]] == ["failed", "undone"]


def test_a_watch_that_was_cut_short_goes_on(mirrored: HeldDataset, watching: Any) -> None:
    """Ctrl-C leaves things as they are; what was found before counts when the same watch is begun again."""

    def interrupt() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        watching(WHILE, interrupt, at=3)
    assert (mirrored.record.route.mode, flags(mirrored)) == ("dual", [])
    steps, _, reads = watching(WHILE, promote=False)
    assert steps[0].details["reads"] == reads + 3
    assert mirrored.record.route.mode == "dual"


def test_a_watch_that_was_taken_over_leaves_the_flags_to_its_successor(mirrored: HeldDataset, watching: Any) -> None:
    workspace = mirrored.workspace

    def taken_over() -> None:
        with workspace.database.transaction() as connection:
            connection.exec_driver_sql(
                f"UPDATE lakeward.flips SET fence = fence + 1 WHERE dataset_id = {mirrored.created.id}"
            )

    with pytest.raises(LeaseLost, match="taken over"):
        watching(WHILE, taken_over)
    assert "api.read" in flags(mirrored)
    assert workspace.flip(mirrored.created.name).status().events[-1].event == "started"


def test_flags_that_a_killed_watch_left_are_put_back(mirrored: HeldDataset, watching: Any) -> None:
    """The next watch does it, and so does whoever cancels; what somebody has set meanwhile is his."""
    workspace, name = mirrored.workspace, mirrored.created.name
    workspace.flags.set(reader="export", prefer="postgres", dataset=name)
    flip = workspace.flip(name)
    readers = {"api.read": None, "api.pin": None}
    flip._rooms.flips.note(flip._going_on(), "canary", "started", "killed", details={"watch": {}, "readers": readers})
    workspace.flags.set(reader="api.read", prefer="shadow", dataset=name)
    workspace.flags.set(reader="api.pin", prefer="iceberg", dataset=name)
    assert "put the flag of reader api.read back" in flip.explain_undo(cancel=True)
    watching(Limits(2), promote=False)
    assert sorted(flags(mirrored)) == ["api.pin", "export"]


def test_a_dataset_that_is_not_mirrored_is_not_watched(shared: lakeward.Workspace) -> None:
    held = ArmUnderTest(shared, "postgres").create({"id": "long"})
    flip = shared.flip(held.created.name)
    flip.run("iceberg", until="verify")
    with pytest.raises(UsageError, match="is not mirrored"):
        flip.canary(WHILE)


def spoil(held: HeldDataset) -> None:
    """Change one row on the Postgres arm, where nobody looks."""
    workspace = held.workspace
    with workspace.database.transaction() as connection:
        connection.exec_driver_sql(
            "UPDATE lakeward.dataset_rows SET data = jsonb_set(data, '{note}', '\"other\"') "
            f"WHERE dataset_id = {held.created.id} AND row_index = 15"
        )
    changed = workspace.storage.read(held.record, ReadRequest(arm="postgres", where="note = 'other'")).read_all()
    assert changed.num_rows == 1
