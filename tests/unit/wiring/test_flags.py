"""Flags as a workspace sets them: above a ceiling nothing is set, and for one dataset a writer's flag is its route."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from lakeward.control.flags.registry import WRITERS, Writer
from lakeward.errors import ArmNotCurrent, ConflictError, LakewardError, UnknownObject, UsageError
from lakeward.testing import FakeClock

LOW = Writer("test.low", "goes to Postgres only", ceiling="pg")
COLUMNS = {"id": "long", "note": "string"}


def test_what_is_refused_names_the_way_out(workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(WRITERS, LOW.name, LOW)  # type: ignore[arg-type]
    flags = workspace.flags
    for asked, error, says in (
        ({"writer": "test.low", "mode": "dual"}, UsageError, "the ceiling of writer test.low is pg"),
        ({"writer": "ingest.api", "mode": "tape"}, UsageError, "there are pg, dual, iceberg_dual, iceberg_native"),
        ({"writer": "ingest.ap", "mode": "pg"}, UnknownObject, "did you mean ingest.api?"),
        ({"writer": "flip.switch", "mode": "pg"}, UnknownObject, "unknown writer 'flip.switch'"),
        ({"reader": "api.read", "prefer": "both"}, UsageError, "it can primary, postgres, iceberg, shadow"),
        ({"reader": "api.red", "prefer": "shadow"}, UnknownObject, "did you mean api.read?"),
        ({"reader": "api.read", "mode": "pg"}, UsageError, "a reader is set with prefer"),
        ({"reader": "api.read", "writer": "ingest.api", "mode": "pg"}, UsageError, "one of them only"),
        ({"reader": "api.read", "prefer": "shadow", "dataset": "a.b.c"}, UnknownObject, "unknown dataset a.b.c"),
    ):
        with pytest.raises(error, match=says):
            flags.set(**asked)
        with pytest.raises(error, match=says):
            flags.explain_set(**asked)
    assert {each.source for each in flags.list()} == {"default"}


def test_a_flag_of_a_writer_for_one_dataset_changes_its_route(workspace: lakeward.Workspace) -> None:
    dataset = workspace.create_dataset("main.sales.orders", COLUMNS, ["id"])
    dataset.write([{"id": 1, "note": "a"}])
    flags = workspace.flags

    def change(mode: str) -> bool:
        asked = {"writer": "ingest.api", "mode": mode, "dataset": dataset.name}
        planned = flags.explain_set(**asked)
        changed = flags.set(**asked)
        assert changed == bool(planned)
        assert dataset.record.route.mode == mode
        return changed

    for mode in ("dual", "iceberg_native"):
        with pytest.raises(ArmNotCurrent, match="the iceberg arm holds none of its versions, its head is 1") as caught:
            change(mode)
        assert caught.value.next_step == f"lakeward flip start {dataset.name} --to iceberg"
    assert not change("pg")
    dataset.copy_to("iceberg")
    assert change("dual") and change("iceberg_dual") and not change("iceberg_dual")
    dataset.write([{"id": 2, "note": "b"}])
    assert dataset.verify().digests.keys() == {"postgres", "iceberg"}
    assert change("iceberg_native")
    missed, head = dataset.version, dataset.write([{"id": 3, "note": "c"}]).version
    with pytest.raises(ArmNotCurrent, match=f"the postgres arm holds version {missed}, its head is {head}"):
        change("iceberg_dual")
    shown = {(each.kind, each.name): each for each in flags.list(dataset.name)}
    assert shown["writer", "ingest.api"].value == "iceberg_native"
    with pytest.raises(UsageError, match="its mode, iceberg_native, is its route"):
        flags.clear(writer="ingest.api", dataset=dataset.name)
    workspace.flip(dataset.name).run(to="postgres", until="check")
    with pytest.raises(ConflictError, match="is being flipped"):
        change("dual")


def test_a_writer_that_may_not_go_so_far_is_refused_before_it_writes(
    workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(WRITERS, LOW.name, LOW)  # type: ignore[arg-type]
    dataset = workspace.create_dataset("main.sales.lines", COLUMNS, arm="iceberg")
    with pytest.raises(UsageError, match=r"the ceiling of writer test\.low is pg") as caught:
        workspace.storage.write(dataset.record, [{"id": 1, "note": "a"}], verb="append", writer="test.low")
    assert caught.value.next_step and "lakeward flip start main.sales.lines --to postgres" in caught.value.next_step
    assert (dataset.version, dataset.status().holders) == (0, ())


def test_a_new_dataset_is_mirrored_from_its_first_write_on(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    flags = workspace.flags
    assert flags.set(writer="ingest.api", mode="dual") and not flags.set(writer="ingest.api", mode="dual")
    made = workspace.create_dataset("main.born.dual", COLUMNS, ["id"])
    made.write([{"id": 1, "note": "a"}])
    assert made.status().holders == ("postgres", "iceberg") and made.verify().equal
    # What is said of one dataset goes before the flag.
    assert workspace.create_dataset("main.born.alone", COLUMNS, arm="postgres").record.route.mode == "pg"
    flags.set(writer="dataset.import", mode="iceberg_dual")
    (tmp_path / "rows.csv").write_text("id\n1\n", encoding="utf-8")
    plan = workspace.plan_import("main.born.read", tmp_path / "rows.csv")
    assert "on the iceberg arm, mirrored to postgres" in " ".join(plan.actions())
    workspace.run_import(plan)
    assert workspace.dataset("main.born.read").status().holders == ("postgres", "iceberg")
    flags.set(writer="run.output", mode="iceberg_native")
    workspace.run("select * from main.born.dual", into="main.born.computed")
    assert workspace.dataset("main.born.computed").record.route.mode == "iceberg_native"
    assert flags.clear(writer="ingest.api") and not flags.clear(writer="ingest.api")
    assert workspace.create_dataset("main.born.plain", COLUMNS).record.route.mode == "pg"


def test_a_stale_cache_moves_nothing(workspace: lakeward.Workspace, database_url: str, tmp_path: Path) -> None:
    """Another process changes route and flags; one for which no time passes, and so hears nothing, writes right."""
    orders = workspace.create_dataset("main.sales.orders", COLUMNS, ["id"])
    orders.write([{"id": 1, "note": "a"}])
    orders.copy_to("iceberg")
    warehouse = workspace.settings.values.warehouse
    with lakeward.open(tmp_path / "other", database_url=database_url, warehouse=warehouse, clock=FakeClock()) as stale:
        dataset, cache = stale.dataset(orders.name), stale.storage.flags
        assert (cache.mode_of_new("ingest.api"), dataset.to_arrow().num_rows) == ("pg", 1)
        workspace.flags.set(writer="ingest.api", mode="iceberg_native", dataset=orders.name)
        workspace.flags.set(writer="ingest.api", mode="iceberg_native")
        workspace.flags.set(reader="api.read", prefer="postgres")
        dataset.write([{"id": 2, "note": "b"}])
        assert orders.status().holders == ("iceberg",)
        assert sorted(dataset.to_arrow()["id"].to_pylist()) == [1, 2]
        with pytest.raises(LakewardError, match="that arm holds version 2"):
            dataset.to_arrow(arm="postgres")
        assert (cache.mode_of_new("ingest.api"), cache.preference("api.read", orders.record.id)) == ("pg", "primary")
