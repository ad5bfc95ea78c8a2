"""A copy that a backfill has brought and nobody has compared yet: it is held, and counts for nobody until then."""

from __future__ import annotations

from typing import Any

import psycopg
import pyarrow as pa
import pytest

import lakeward
from conformance.test_comparisons import in_parquet, in_postgres
from lakeward.control.flips import Flips
from lakeward.control.retention import Retention
from lakeward.errors import ArmNotCurrent, ConflictError, DatabaseUnavailable, ParityMismatch
from lakeward.migration.directions import DIRECTIONS, direction_to
from lakeward.storage.proving import Proving
from support.arms import ArmUnderTest, HeldDataset, branches, iceberg_table

COLUMNS = {"id": "string", "note": "string"}


def brought(workspace: lakeward.Workspace, to: str) -> HeldDataset:
    """Return a dataset with a copy on the other arm that waits for its comparison, and a version after it."""
    held = ArmUnderTest(workspace, direction_to(to).source).create(COLUMNS, ["id"])
    held.write([{"id": f"k{number}", "note": "a"} for number in range(20)])
    workspace.flip(held.created.name).run(to, until="backfill")
    return held


def waits(held: HeldDataset, to: str) -> tuple[int | None, int | None]:
    """Return the version that an arm holds, and that of a copy there which waits."""
    lag = held.workspace.replication.lag(held.record, to)
    assert lag.holds == held.workspace.replication.freshness(held.record)[to]
    return lag.holds, lag.waits


def mode(held: HeldDataset) -> str:
    return held.record.route.mode


@pytest.mark.parametrize("to", DIRECTIONS)
def test_nobody_is_served_from_it_and_nothing_goes_on_from_it(shared: lakeward.Workspace, to: str) -> None:
    held, direction = brought(shared, to), direction_to(to)
    dataset, replication = shared.dataset(held.created.name), shared.replication
    for prefer in (to, "shadow"):
        shared.flags.set(reader="api.read", prefer=prefer, dataset=dataset.name)
        chosen = shared.storage.routing.choose(held.record, "api.read")
        assert chosen.place is not None and chosen.place.arm.name == direction.source and chosen.beside is None
        assert dataset.to_arrow().num_rows == 20
    with pytest.raises(ArmNotCurrent):
        held.to_arrow(to)
    assert set(shared.storage.verify(held.record).digests) == {direction.source}
    for refused in (direction.mirrored, direction.switched):
        with pytest.raises(ArmNotCurrent):
            replication.reroute(held.record, refused)
    for bring in (lambda: replication.catch_up(held.record, to), lambda: shared.storage.copy(held.record, to)):
        with pytest.raises(ArmNotCurrent, match="was not compared"):
            bring()
    with pytest.raises(ArmNotCurrent, match="was not compared"):
        shared.flip(dataset.name).stage("canary")
    assert list(replication.only_on(held.record, direction.source)) == [1]
    if to == "iceberg":
        assert iceberg_table(shared, held.table).scan().to_arrow().num_rows == 0, "no other engine sees it"
        assert not dataset.restore().done
    # It is there all the same: maintenance leaves it alone, and the version that it is to be compared with stays.
    for number in range(3):
        held.write([{"id": "k1", "note": f"b{number}"}], "upsert")
    ended = [each.version for each in Retention(shared.database, versions=1).expire(held.created.id) if each.ended]
    assert shared.maintain(dataset.name, older_than=60).failures == []
    assert len(ended) == 2 and 1 not in ended and held.to_arrow(version=1).num_rows == 20
    assert (mode(held), waits(held, to)) == (direction.alone, (None, 1))
    shared.flip(dataset.name).run(to)
    assert (mode(held), waits(held, to)) == (direction.switched, (held.version, None))
    assert set(shared.storage.verify(held.record).digests) == set(DIRECTIONS)


@pytest.mark.parametrize("stage", ["mirror", "switch"])
def test_who_leaves_verify_out_compares_then(shared: lakeward.Workspace, stage: str) -> None:
    held = brought(shared, "iceberg")
    held.write([{"id": "k1", "note": "later"}], "upsert")
    shared.flip(held.created.name).stage(stage)
    assert mode(held) == {"mirror": "dual", "switch": "iceberg_dual"}[stage]
    full = shared.comparisons._rooms.parity.newest(held.created.id, "full")
    assert [(each.version, each.equal, each.rows) for each in full] == [(1, True, 20)]
    assert waits(held, "iceberg") == (held.version, None)


def altered(held: HeldDataset, to: str) -> None:
    """Change one row of the copy behind everybody's back, and remove another one."""
    if to == "postgres":
        change = "UPDATE lakeward.dataset_rows SET data = data || '{\"note\": \"x\"}' WHERE data ->> 'id' = 'k7'"
        in_postgres(held, change + " AND dataset_id = %s")
        in_postgres(held, "DELETE FROM lakeward.dataset_rows WHERE data ->> 'id' = 'k9' AND dataset_id = %s")
        return
    # Its files are those of the branch, which no engine is shown.
    in_parquet(held, "k7", "note", pa.array(["x"]), branch=branches(held.workspace, held.table)[0])
    in_parquet(held, "k9", "id", pa.array(["gone"]), branch=branches(held.workspace, held.table)[0])


@pytest.mark.parametrize("to", DIRECTIONS)
def test_rows_that_were_changed_before_it_was_compared_are_named_and_never_served(
    shared: lakeward.Workspace, to: str
) -> None:
    held, direction = brought(shared, to), direction_to(to)
    altered(held, to)
    flip = shared.flip(held.created.name)
    for stage in ("verify", "mirror", "switch"):
        with pytest.raises(ParityMismatch) as caught:
            flip.stage(stage)
        assert "k7" in str(caught.value) and "k9" in str(caught.value)
        assert (mode(held), waits(held, to)) == (direction.alone, (None, 1))
    with pytest.raises(ParityMismatch):
        flip.run(to)
    assert held.to_arrow().num_rows == 20
    # A new copy heals it.
    shared.comparisons.resync(held.created.name)
    assert waits(held, to) == (1, None)
    flip.run(to)
    assert mode(held) == direction.switched


def test_a_copy_that_was_made_anew_is_not_proved_by_the_comparison_of_the_old_one(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that compared was paused, and wakes up when another one has gone on."""
    held, prove = brought(shared, "postgres"), Proving.prove

    def late(*arguments: Any) -> None:
        monkeypatch.setattr(Proving, "prove", prove)
        shared.replication.drain(held.record, "postgres")
        shared.replication.backfill(held.record, "postgres")
        prove(*arguments)

    monkeypatch.setattr(Proving, "prove", late)
    with pytest.raises(ConflictError, match="was removed while it was compared"):
        shared.flip(held.created.name).stage("verify")
    assert waits(held, "postgres") == (None, 1)


def test_a_copy_that_is_given_up_leaves_nothing(shared: lakeward.Workspace) -> None:
    for to in DIRECTIONS:
        held = brought(shared, to)
        assert held.leftovers() == {}
        shared.flip(held.created.name).cancel()
        assert (waits(held, to), branches(shared, held.table)) == ((None, None), [])
        with psycopg.connect(shared.database.libpq_url) as connection:
            query = "SELECT count(*) FROM lakeward.dataset_rows WHERE dataset_id = %s"
            (rows,) = connection.execute(query, (held.created.id,)).fetchone() or (None,)
        assert rows == (20 if to == "iceberg" else 0)


def test_the_first_error_is_told_where_its_note_fails_too(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, note = brought(shared, "iceberg"), Flips.note
    altered(held, "iceberg")

    def failing(flips: Flips, flip: Any, stage: str, event: str, *more: Any, **how: Any) -> None:
        if event == "failed":
            raise DatabaseUnavailable("it went away")
        note(flips, flip, stage, event, *more, **how)

    monkeypatch.setattr(Flips, "note", failing)
    with pytest.raises(ParityMismatch):
        shared.flip(held.created.name).stage("verify")
    monkeypatch.setattr("lakeward.migration.resyncing._anew", lambda *_: shared.flip(held.created.name).revert())
    with pytest.raises(ConflictError):
        shared.comparisons.resync(held.created.name)
