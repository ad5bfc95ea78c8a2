"""What a plan foresees of the next build: full or delta, why, what is lost; and that the build then does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy

import lakeward
from lakeward.pipelines.plan import OutputPlan, Plan
from lakeward.pipelines.project import Project

KEPT = """\
pipeline: kept
nodes: {orders: {source: main.raw.orders}}
outputs: [{dataset: main.m.kept, from: orders, strategy: snapshot_replace, primary_key: [id]}]
"""
LOG = """\
pipeline: log
nodes: {kept: {source: main.m.kept}, all: {transform: "select id, amount from kept"}}
outputs: [{dataset: main.m.log, from: all, strategy: append_always, arm: iceberg}]
"""
SUMS = """\
-- pipeline: sums
-- sources: {kept: main.m.kept}
-- output: main.m.sums
-- strategy: replace
select count(*) as n from kept
"""
ALL = {"a_yml": KEPT, "b_yml": LOG, "c_sql": SUMS}


@pytest.fixture
def built(workspace: lakeward.Workspace, project: Callable[..., Project]) -> lakeward.Workspace:
    """Three pipelines in a row, applied and built."""
    workspace.create_dataset("main.raw.orders", {"id": "long", "amount": "long"}, ["id"])
    fill(workspace, 1, 2)
    workspace.pipelines.apply(project(**ALL))
    workspace.build()
    return workspace


def fill(workspace: lakeward.Workspace, *ids: int, amount: int = 1) -> None:
    workspace.dataset("main.raw.orders").write([{"id": id_, "amount": amount} for id_ in ids], mode="upsert")


def outputs(plan: Plan) -> dict[str, OutputPlan]:
    return {output.dataset.rpartition(".")[2]: output for pipeline in plan.pipelines for output in pipeline.outputs}


def actions(plan: Plan) -> dict[str, str]:
    return {name: output.action for name, output in outputs(plan).items()}


def test_nothing_new(built: lakeward.Workspace, project: Callable[..., Project]) -> None:
    plan = built.pipelines.plan(project(**ALL))
    assert actions(plan) == {"kept": "keep", "log": "keep", "sums": "keep"}
    assert not plan.pending and not plan.destructive


def test_new_rows_go_through_by_delta_as_it_was_foreseen(
    built: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    fill(built, 3)
    plan = built.pipelines.plan(project(**ALL))
    assert not plan.pending
    found = outputs(plan)
    assert actions(plan) == {"kept": "delta", "log": "delta", "sums": "rebuild"}
    assert found["kept"].reason == "main.raw.orders: 1 new version since the last build"
    assert found["log"].reason.endswith("what main.m.kept gets before, if rows are only added")
    assert found["sums"].reason == "replace needs every row"
    assert not plan.destructive
    verbs = {each.dataset: (each.verb, each.rows_in) for result in built.build() for each in result.transactions}
    assert verbs == {"main.m.kept": ("upsert", 1), "main.m.log": ("append", 1), "main.m.sums": ("replace", 1)}


def test_a_log_that_starts_over_is_marked(built: lakeward.Workspace, project: Callable[..., Project]) -> None:
    plan = built.pipelines.plan(project(**{**ALL, "b_yml": LOG.replace("from kept", "from kept where id > 0")}))
    log = outputs(plan)["log"]
    assert (log.action, log.reason) == ("rebuild", "the pipeline is not the one of the last build")
    assert log.destructive == "starts over: takes the place of 2 rows, also of what the sources do not hold any more"
    assert [output.dataset for output in plan.destructive] == ["main.m.log"]
    assert any(line.strip().startswith("! starts over") for line in plan.lines())


def test_what_reads_a_dataset_that_is_replaced_before_is_rebuilt(
    built: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    fill(built, 3)
    changed = KEPT.replace("snapshot_replace", "replace")
    log = outputs(built.pipelines.plan(project(**{**ALL, "a_yml": changed})))["log"]
    assert (log.action, log.reason) == ("rebuild", "main.m.kept is replaced before")
    assert log.destructive is not None
    built.pipelines.apply(project(**{**ALL, "a_yml": changed}))
    assert {each.dataset: each.verb for result in built.build() for each in result.transactions} == {
        "main.m.kept": "replace",
        "main.m.log": "replace",
        "main.m.sums": "replace",
    }


def test_rows_that_no_pipeline_wrote_are_marked_before_they_are_replaced(
    built: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    built.create_dataset("main.m.mine", {"n": "long"}).write([{"n": 7}])
    sums = SUMS.replace("main.m.sums", "main.m.mine")
    plan = built.pipelines.plan(project(a_yml=KEPT, b_yml=LOG, c_sql=sums))
    assert outputs(plan)["mine"].destructive == "takes the place of 1 row that no pipeline wrote"
    assert outputs(plan)["sums"].action == "leave"
    built.dataset("main.m.sums").write([{"n": 9}])
    by_hand = outputs(built.pipelines.plan(project(**ALL)))["sums"]
    assert by_hand.destructive == "takes the place of 2 rows, also of what was written by hand since the last build"


def test_a_source_that_is_yet_to_be_built(built: lakeward.Workspace, project: Callable[..., Project]) -> None:
    more = KEPT.replace("pipeline: kept", "pipeline: more").replace("main.m.kept", "main.m.more")
    reads = SUMS.replace("sums", "late").replace("main.m.kept", "main.m.more")
    plan = built.pipelines.plan(project(**ALL, d_yml=more, e_sql=reads))
    assert (actions(plan)["more"], actions(plan)["late"]) == ("create", "create")


def test_a_plan_changes_nothing_in_postgres(built: lakeward.Workspace, project: Callable[..., Project]) -> None:
    fill(built, 3)
    changed = project(a_yml=KEPT.replace("from: orders", "from: other").replace(
        "orders: {source: main.raw.orders}",
        'orders: {source: main.raw.orders}, other: {transform: "select id, amount + 1 as amount from orders"}',
    ), c_sql=SUMS, d_sql=SUMS.replace("sums", "more"))  # fmt: skip
    before = everything(built)
    assert built.pipelines.plan(changed).pending
    assert everything(built) == before
    assert built.pipelines.plan(changed).to_json() == built.pipelines.plan(changed).to_json()
    built.pipelines.apply(changed)
    assert everything(built) != before


def everything(workspace: lakeward.Workspace) -> dict[str, Any]:
    """Every row of every table, with the transaction that wrote it, and where every sequence is."""
    fetch = workspace.database.fetch
    tables = [
        row["name"]
        for row in fetch(
            sqlalchemy.text(
                "select quote_ident(schemaname) || '.' || quote_ident(tablename) as name from pg_tables "
                "where schemaname not in ('pg_catalog', 'information_schema')"
            )
        )
    ]
    assert len(tables) > 10
    found: dict[str, Any] = {
        name: fetch(
            sqlalchemy.text(
                f"select count(*) as n, md5(string_agg(t.xmin || t::text, '' order by t::text)) from {name} t"
            )
        )
        for name in tables
    }
    found["sequences"] = fetch(sqlalchemy.text("select * from pg_sequences order by 1, 2"))
    return {name: [dict(row) for row in rows] for name, rows in found.items()}
