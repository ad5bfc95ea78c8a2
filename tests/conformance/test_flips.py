"""Flips: where things stand after each stage has run, after it was undone, and when all is complete.

Whatever a flip does, no version is made, no row changes, and a stage that is repeated does nothing more.
"""

from __future__ import annotations

from dataclasses import dataclass

import pytest

import lakeward
from lakeward.errors import ConflictError, DatabaseUnavailable, Diverged, ParityMismatch, UsageError
from lakeward.migration.directions import DIRECTIONS, Direction, direction_to
from lakeward.migration.flip import Flip, all_stages
from lakeward.migration.options import Options
from lakeward.migration.stages.check import Check
from lakeward.testing import AtStep
from support.arms import ArmUnderTest, HeldDataset, stored_versions
from support.other_engine import OtherEngine

ROWS = [{"id": number, "note": f"row {number}"} for number in range(20)]

BOTH, ONE = True, False
STANDS: dict[str, tuple[str, bool]] = {
    "check": ("alone", ONE),
    "backfill": ("alone", ONE),
    "verify": ("alone", BOTH),
    "mirror": ("mirrored", BOTH),
    "canary": ("mirrored", BOTH),
    "switch": ("switched", BOTH),
}
"""What each stage leaves: the mode, by its name in `Direction`, and whether both arms hold the head."""


@dataclass(frozen=True)
class State:
    """What a flip may change, and what it may not."""

    mode: str
    both: bool
    head: int
    rows: tuple[tuple[object, ...], ...]


def state(held: HeldDataset) -> State:
    record = held.record
    freshness = held.workspace.replication.freshness(record)
    arms = [arm for arm in DIRECTIONS if record.head_version and freshness[arm] == record.head_version]
    table = held.workspace.dataset(record.name).to_arrow(identity=True).sort_by("__row_index")
    assert held.leftovers() == {}
    return State(record.route.mode, len(arms) > 1, record.head_version, tuple(map(tuple, table.to_pylist())))


def begun(workspace: lakeward.Workspace, direction: Direction) -> tuple[HeldDataset, Flip, State]:
    """Return a dataset with a few versions on the arm that the flip leaves, the flip, and how it stands."""
    held = ArmUnderTest(workspace, direction.source).create({"id": "long", "note": "string"}, ["id"])
    held.write(ROWS)
    held.write([{"id": 3, "note": "changed"}, {"id": 99, "note": "new"}], "upsert")
    return held, workspace.flip(held.created.name), state(held)


def after(before: State, direction: Direction, stage: str) -> State:
    mode, both = STANDS[stage]
    return State(getattr(direction, mode), both, before.head, before.rows)


@pytest.mark.parametrize("to", DIRECTIONS)
def test_every_stage_after_start_and_after_undo(shared: lakeward.Workspace, to: str) -> None:
    direction = direction_to(to)
    held, flip, before = begun(shared, direction)
    names = [each.name for each in all_stages() if each.automatic]
    assert list(STANDS) == names
    for stage in names:
        assert all(state.actions for state in flip.explain(to))
        assert [step.stage for step in flip.run(to, until=stage)] == [stage]
        assert state(held) == after(before, direction, stage)
        assert flip.run(to, until=stage) == []
    for stage, earlier in zip(reversed(names), [*reversed(names[:-1]), None], strict=True):
        flip._undo([stage], None)
        # A copy that was compared stays so.
        earlier = stage if stage == "verify" else earlier
        assert state(held) == (after(before, direction, earlier) if earlier is not None else before)
        assert flip._undo([stage], None) == []
    # And all of it at once, from the middle; then as if nothing had been.
    flip.run(to)
    foretold = flip.explain_undo(cancel=True)
    assert flip.cancel() == foretold
    assert len(foretold) == 3
    assert state(held) == before
    assert (flip.status().outcome, flip.status().stages) == ("cancelled", ())


@pytest.mark.parametrize("to", DIRECTIONS)
def test_there_and_back_and_complete(shared: lakeward.Workspace, to: str) -> None:
    direction = direction_to(to)
    held, flip, before = begun(shared, direction)
    steps = flip.run(to)
    assert [step.stage for step in steps] == [stage.name for stage in all_stages() if stage.automatic]
    foretold = flip.explain_undo(cancel=False)
    assert flip.revert() == foretold != []
    assert state(held) == after(before, direction, "mirror")
    assert flip.revert() == []
    with pytest.raises(UsageError, match="still served"):
        flip.complete(Options(confirmed=held.created.name))
    assert [step.stage for step in flip.run()] == ["switch"]
    with pytest.raises(UsageError, match="can't be taken back"):
        flip.complete(Options(confirmed="main.conformance.another"))
    assert state(held) == after(before, direction, "switch")
    flip.complete(Options(confirmed=held.created.name))
    # Postgres is emptied; the Iceberg table's versions stay until they expire, and are no mirror any more.
    assert state(held) == State(direction.final, to == "postgres", before.head, before.rows)
    assert (stored_versions(shared, held.created.id) == []) == (to == "iceberg")
    assert flip.status().outcome == "completed"
    for act in (flip.revert, flip.cancel):
        with pytest.raises(UsageError, match="no flip"):
            act()
    # The reverse flip is what reverts it.
    flip.run(direction.source)
    assert state(held) == State(direction_to(direction.source).switched, BOTH, before.head, before.rows)


def test_what_complete_has_begun_is_not_cancelled(shared: lakeward.Workspace, shared_url: str) -> None:
    direction = direction_to("iceberg")
    held, flip, before = begun(shared, direction)
    flip.run("iceberg")

    def stop() -> None:
        raise KeyboardInterrupt

    with (
        lakeward.open(
            database_url=shared_url, warehouse=shared.settings.values.warehouse, faults=AtStep("flip:final", stop)
        ) as other,
        pytest.raises(KeyboardInterrupt),
    ):
        other.flip(held.created.name).complete(Options(confirmed=held.created.name))
    assert state(held).mode == direction.final
    for act in (flip.revert, flip.cancel):
        with pytest.raises(UsageError, match="is complete"):
            act()
    flip.complete(Options(confirmed=held.created.name))
    assert (flip.status().outcome, state(held).rows) == ("completed", before.rows)


def test_a_mismatch_keeps_the_old_arm_serving(shared: lakeward.Workspace) -> None:
    direction = direction_to("postgres")
    held, flip, before = begun(shared, direction)
    flip.run("postgres", until="mirror")
    flip._rooms.parity.record(held.created.id, held.version, "read", equal=False, rows=1, details={})
    with pytest.raises(ParityMismatch, match="differ"):
        flip.stage("switch")
    assert state(held) == after(before, direction, "mirror")
    assert flip.status().events[-1].event == "failed"
    # A comparison of all rows finds them equal: verify is what clears it.
    assert next(step.stage for step in flip.run("postgres")) == "verify"
    assert state(held) == after(before, direction, "switch")


def test_what_a_stage_fails_by_is_what_is_told(shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever its text is made of, and also where nothing can be noted any more."""
    _, flip, _ = begun(shared, direction_to("iceberg"))

    def fails(*_: object) -> None:
        raise ConflictError("at 'a\0b \ud83d'")

    monkeypatch.setattr(Check, "run", fails)
    with pytest.raises(ConflictError, match="at 'a"):
        flip.run("iceberg")
    assert flip.status().events[-1].details == {"error": "at 'a\\x00b \\ud83d'"}
    fetch = shared.database.fetch

    def away(query: object, *given: object) -> object:
        if "'failed'" in str(given) or "SET owner = NULL" in str(query):
            raise DatabaseUnavailable("Postgres is away")
        return fetch(query, *given)

    monkeypatch.setattr(shared.database, "fetch", away)
    with pytest.raises(ConflictError, match="at 'a") as caught:
        flip.run("iceberg")
    assert [note.partition(":")[0] for note in caught.value.__notes__] == [
        "That check failed could not be noted",
        "The lease on the flip could not be given back, and ends by itself",
    ]


def test_rows_of_another_engine_are_not_taken_for_the_copy(shared: lakeward.Workspace) -> None:
    held, flip, before = begun(shared, direction_to("iceberg"))
    flip.run("iceberg", until="verify")
    other = OtherEngine(shared, shared.dataset(held.created.name))
    other.append({"id": 1000, "note": "theirs"})
    with pytest.raises(Diverged, match="holds rows of another engine"):
        flip.cancel()
    assert len(other.rows()) == len(before.rows) + 1
    assert held.record.route.mode == "pg"


def test_a_flip_to_the_other_arm_has_to_be_ended_first(shared: lakeward.Workspace) -> None:
    _, flip, _ = begun(shared, direction_to("iceberg"))
    flip.run("iceberg", until="verify")
    with pytest.raises(ConflictError, match="is being flipped to the iceberg arm"):
        flip.run("postgres")


def test_a_dataset_without_a_version(shared: lakeward.Workspace) -> None:
    held = ArmUnderTest(shared, "postgres").create({"id": "long", "note": "string"}, ["id"])
    flip = shared.flip(held.created.name)
    flip.run("iceberg")
    flip.complete(Options(confirmed=held.created.name))
    assert held.record.route.mode == "iceberg_native"
    shared.dataset(held.created.name).write(ROWS)
    assert state(held).mode == "iceberg_native"


@pytest.mark.parametrize("to", DIRECTIONS)
def test_a_dataset_that_is_there_already_is_left_alone(shared: lakeward.Workspace, to: str) -> None:
    held = ArmUnderTest(shared, to).create({"id": "long", "note": "string"}, ["id"])
    held.write(ROWS)
    before, flip = state(held), shared.flip(held.created.name)
    assert flip.explain(to) == [] == flip.run(to)
    assert flip.status().to is None and state(held) == before
