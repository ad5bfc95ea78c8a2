"""What may come between: maintenance, a second copy, another engine, a catalog that is gone. No arm is left with other
rows than it counts as holding, and nobody who writes waits for a mirror.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import psycopg
import pyarrow as pa
import pytest

import lakeward
from conformance.test_mirrors import COLUMNS, assert_equal, broken, mirrored, numbered, write
from lakeward.errors import CatalogError, LockTimeout, UsageError
from lakeward.storage.arms.iceberg.tables import Tables
from lakeward.storage.recovery import Recovery
from lakeward.testing import AtStep
from support.arms import ArmUnderTest, HeldDataset, branches, copied, stored_versions
from support.other_engine import OtherEngine


class Held(NamedTuple):
    """A claim."""

    id: int
    fence: int


Interrupted = Callable[[str, Callable[[], None], int], lakeward.Workspace]


@pytest.fixture
def interrupted(shared: lakeward.Workspace, shared_url: str) -> Iterator[Interrupted]:
    """Opens the shared workspace once more, where something happens at a step."""
    opened: list[lakeward.Workspace] = []

    def at(step: str, action: Callable[[], None], occurrence: int = 1) -> lakeward.Workspace:
        faults = AtStep(step, action, occurrence)
        warehouse = shared.settings.values.warehouse
        opened.append(lakeward.open(database_url=shared_url, warehouse=warehouse, faults=faults))
        return opened[-1]

    yield at
    for each in opened:
        each.close()


def upsert(workspace: lakeward.Workspace, held: HeldDataset, *ids: int) -> lakeward.WriteResult:
    return workspace.storage.write(held.record, numbered(*ids, note="b"), verb="upsert", writer="conformance")


@pytest.mark.parametrize("bring", ["backfill", "catch_up"])
def test_a_version_that_is_brought_while_maintenance_runs_stays(
    shared: lakeward.Workspace, interrupted: Interrupted, bring: str
) -> None:
    held = ArmUnderTest(shared, "iceberg").create(COLUMNS, ["id"])
    write(held, numbered(*range(10)))

    def brought() -> None:
        if bring == "backfill":
            copied(shared, held.record, "postgres")
        else:
            shared.replication.catch_up(held.record, "postgres")

    other = interrupted("maintain:expired", brought, 1)
    assert other.maintain(held.created.name, older_than=60).failures == []
    assert_equal(held)


def test_rows_that_are_being_caught_up_stay_while_maintenance_runs(
    shared: lakeward.Workspace, interrupted: Interrupted
) -> None:
    held = ArmUnderTest(shared, "iceberg").create(COLUMNS, ["id"])
    write(held, numbered(*range(10)))

    def maintained() -> None:
        assert shared.maintain(held.created.name, older_than=60).failures == []

    interrupted("decide", maintained, 1).replication.catch_up(held.record, "postgres")
    assert_equal(held)


def test_an_old_version_that_came_to_iceberg_while_maintenance_runs_stays(
    shared: lakeward.Workspace, interrupted: Interrupted
) -> None:
    held = mirrored(shared, "dual")
    write(held, numbered(*range(10)))
    upsert(interrupted("mirror", broken, 1), held, 11)
    version = held.version
    with pytest.MonkeyPatch.context() as patch:
        # It was behind when maintenance looked, which then tidies what it knows of.
        def caught_up() -> None:
            shared.replication.catch_up(held.record, "iceberg")
            write(held, numbered(12), "upsert")

        other = interrupted("maintain:expired", caught_up, 1)
        patch.setattr(other.replication, "lag", lambda *_: shared.replication.lag(held.record, "postgres"))
        assert other.maintain(held.created.name, older_than=60).failures == []
    assert held.to_arrow("iceberg", version=version).num_rows == 11
    assert_equal(held)


def test_an_arm_that_was_emptied_in_part_is_no_mirror(shared: lakeward.Workspace, interrupted: Interrupted) -> None:
    held = mirrored(shared, "iceberg_dual")
    write(held, numbered(*range(10)))
    shared.replication.reroute(held.record, "iceberg_native")
    with pytest.raises(RuntimeError, match="out of order"):
        interrupted("maintain:rows", broken, 2).replication.drain(held.record, "postgres")
    shared.replication.reroute(held.record, "iceberg_dual")
    write(held, numbered(20))
    assert not shared.replication.lag(held.record, "postgres").current
    shared.replication.catch_up(held.record, "postgres")
    assert_equal(held)


def test_nothing_else_is_brought_to_an_arm_beside_a_backfill(shared: lakeward.Workspace) -> None:
    """Nor does anybody who tries keep the writers waiting."""
    held = ArmUnderTest(shared, "iceberg").create(COLUMNS, ["id"])
    write(held, numbered(*range(10)))

    def meanwhile(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        replication = shared.replication
        for bring in (replication.backfill, replication.catch_up, shared.storage.copy):
            with pytest.raises(LockTimeout, match="is being backfilled"):
                bring(held.record, "postgres")
            write(held, numbered(held.version + 100), "upsert")
            with pytest.raises(LockTimeout, match="is being backfilled"):
                bring(held.record, "postgres")
        return rows

    copied(shared, held.record, "postgres", watched=meanwhile)
    shared.replication.catch_up(held.record, "postgres")
    assert_equal(held)


@pytest.mark.parametrize("to", ["postgres", "iceberg"])
def test_only_who_holds_the_claim_removes_what_a_backfill_has_brought(
    shared: lakeward.Workspace, interrupted: Interrupted, to: str
) -> None:
    """One that was taken over may wake up in the moment before it tidies."""
    held = ArmUnderTest(shared, {"iceberg": "postgres", "postgres": "iceberg"}[to]).create(COLUMNS, ["id"])
    write(held, numbered(*range(10)))
    there: list[bool] = []

    def brought() -> bool:
        return bool(branches(shared, held.table) if to == "iceberg" else stored_versions(shared, held.created.id))

    def tidied() -> None:
        query = "SELECT id, fence FROM lakeward.dataset_transactions WHERE dataset_id = %s AND status = 'open'"
        with psycopg.connect(shared.database.libpq_url) as connection:
            ((id_, fence),) = connection.execute(query, (held.created.id,)).fetchall()
        for each in (fence - 1, fence):
            shared.storage.routing.arm(to).discard_after(held.table, 0, Held(id_, each))
            there.append(brought())

    interrupted("audit", tidied, 1).replication.backfill(held.record, to)
    assert there == [True, False]


@pytest.mark.parametrize("step", ["compute", "decide:committed"])
def test_no_write_waits_for_the_catalog_of_a_mirror(
    shared: lakeward.Workspace, interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    held = mirrored(shared, "dual")
    write(held, numbered(*range(10)))

    def away(*_: object) -> None:
        raise CatalogError("the catalog is away")

    with monkeypatch.context() as patch:

        def falls() -> None:
            for name in ("load", "find"):
                patch.setattr(Tables, name, away)

        upsert(interrupted(step, falls, 1), held, 11)
        assert not write(held, numbered(*range(10)), "upsert").committed
        assert write(held, numbered(12), "upsert").rows_added == 1
    shared.recover()
    shared.replication.catch_up(held.record, "iceberg")
    assert_equal(held)


@pytest.mark.parametrize("mode", ["dual", "iceberg_dual"])
def test_a_route_to_postgres_does_not_wait_for_the_catalog(
    shared: lakeward.Workspace, interrupted: Interrupted, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    held = mirrored(shared, mode)
    write(held, numbered(*range(10)))
    asked: list[object] = []

    def away(*_: object) -> None:
        asked.append(_)
        raise CatalogError("the catalog is away")

    def falls() -> None:
        for name in ("load", "find"):
            monkeypatch.setattr(Tables, name, away)

    # Committed, and not published: what keeps the slot until somebody has asked the catalog.
    upsert(interrupted("decide:committed", falls, 1), held, 11)
    asked.clear()
    with pytest.raises(CatalogError, match="the catalog is away"):
        shared.replication.reroute(held.record, "iceberg_native")
    asked.clear()
    assert shared.replication.reroute(held.record, "pg").primary_arm == "postgres" and not asked
    assert write(held, numbered(12), "upsert").row_count == 12
    monkeypatch.undo()
    assert [each.outcome for each in shared.recover() if each.dataset == held.created.name] == ["published"]


@pytest.mark.parametrize("step", ["prepare", "decide:committed"])
def test_another_engine_at_the_table_of_a_mirror_stops_no_write_and_is_undone(
    shared: lakeward.Workspace, interrupted: Interrupted, step: str
) -> None:
    held = mirrored(shared, "dual")
    write(held, numbered(*range(10)))
    engine = OtherEngine(shared, shared.dataset(held.created.name))

    def appended() -> None:
        engine.append({"id": 77, "__row_id": 77_000})

    upsert(interrupted(step, appended, 1), held, 11)
    write(held, numbered(12), "upsert")
    assert "Diverged" in str(shared.replication.lag(held.record, "iceberg").error)
    restored = shared.dataset(held.created.name).restore()
    assert restored.done
    shared.replication.catch_up(held.record, "iceberg")
    write(held, numbered(13), "upsert")
    assert set(shared.storage.verify(held.record).digests) == {"postgres", "iceberg"}


def test_a_mirror_is_brought_past_what_another_engine_did_to_the_primary(shared: lakeward.Workspace) -> None:
    held = mirrored(shared, "iceberg_dual")
    write(held, numbered(*range(10)))
    engine = OtherEngine(shared, shared.dataset(held.created.name))
    engine.compact()
    write(held, numbered(3, 4, 30, note="b"), "upsert")
    assert_equal(held)
    # Rows of an old version come back, under their old identity.
    before = engine.main
    write(held, [{"id": 7}], "delete")
    write(held, numbered(3, note="c"), "upsert")
    engine.set_main(before)
    shared.dataset(held.created.name).adopt()
    shared.replication.catch_up(held.record, "postgres")
    assert_equal(held)


def test_columns_named_like_our_own(shared: lakeward.Workspace) -> None:
    key = ["op", "gone", "k0"]
    held = mirrored(shared, "iceberg_dual", {**dict.fromkeys(key, "long"), "place": "string"}, key)
    for ids, verb in (((1, 2, 3), "append"), ((2, 4), "upsert")):
        write(held, [{**dict.fromkeys(key, id_), "place": verb} for id_ in ids], verb)
        assert_equal(held)


def test_a_mirror_that_is_being_backfilled_is_no_failure_of_maintenance(shared: lakeward.Workspace) -> None:
    held = ArmUnderTest(shared, "postgres").create(COLUMNS, ["id"])
    write(held, numbered(*range(10)))
    shared.replication.reroute(held.record, "dual")
    reports: list[lakeward.MaintenanceReport] = []

    def meanwhile(rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        reports.append(shared.maintain(held.created.name, older_than=60))
        return rows

    copied(shared, held.record, "iceberg", watched=meanwhile)
    (report,) = reports
    assert (report.failures, report.mirrored) == ([], [])
    assert_equal(held)


def test_an_arm_is_not_emptied_while_a_copy_counts_and_is_not_published(
    shared: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever empties it publishes first what counts; what counts from the moment after that keeps them out."""
    held = ArmUnderTest(shared, "postgres").create(COLUMNS, ["id"])
    write(held, numbered(*range(10)))
    publish, emptied = Recovery.publish_places, []

    def empties(*arguments: Any) -> None:
        with monkeypatch.context() as patch, pytest.raises(UsageError, match="or is written to"):
            patch.setattr(Recovery, "recover", lambda *_: [])
            shared.replication.drain(held.record, "iceberg")
        assert shared.replication.freshness(held.record)["iceberg"] == 1
        monkeypatch.setattr(Recovery, "publish_places", publish)
        emptied.append(shared.replication.drain(held.record, "iceberg"))
        publish(*arguments)

    monkeypatch.setattr(Recovery, "publish_places", empties)
    copied(shared, held.record, "iceberg")
    assert emptied == [1]
    assert shared.replication.freshness(held.record)["iceberg"] is None
    write(held, numbered(20), "upsert")
    copied(shared, held.record, "iceberg")
    assert_equal(held)
