"""Loading, planning, applying and building with a real workspace."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
import sqlalchemy

import lakeward
from lakeward.errors import (
    ComputeError,
    DataError,
    EmptyReplace,
    SchemaError,
    SpecError,
    UnknownObject,
    UnknownVersion,
    ValueRefused,
)
from lakeward.pipelines.build import BuildProgress
from lakeward.pipelines.project import Project
from lakeward.types.schema import Schema

BIG = """\
pipeline: big
nodes:
  orders: {source: main.raw.orders}
  names: {source: main.raw.names}
  big: {transform: "select id, amount, note from orders join names using (id) where amount > 2 order by id"}
  totals: {transform: "select sum(amount) as total, count(*) as n from big"}
outputs:
  - {dataset: main.m.big, from: big, strategy: replace, primary_key: [id], arm: iceberg}
  - {dataset: main.m.totals, from: totals, strategy: replace}
"""
AFTER = """\
-- pipeline: after
-- sources: {big: main.m.big}
-- output: main.m.after
-- strategy: replace
select max(id) as last from big
"""


@pytest.fixture
def loaded(workspace: lakeward.Workspace) -> lakeward.Workspace:
    """A workspace with a source on each arm."""
    tree = workspace.tree
    for name, arm, column, type_ in (
        ("orders", "postgres", "amount", "decimal(18,4)"),
        ("names", "iceberg", "note", "string"),
    ):
        schema = Schema.declare({"id": "long", column: type_})
        tree.create_dataset(f"main.raw.{name}", schema, arm=arm, actor="test")
    fill(workspace, 5)
    return workspace


def fill(workspace: lakeward.Workspace, count: int) -> None:
    orders, names = (workspace.tree.dataset(f"main.raw.{name}") for name in ("orders", "names"))
    workspace.storage.write(
        orders, [{"id": number, "amount": number} for number in range(count)], verb="replace", writer="ingest.api"
    )
    workspace.storage.write(
        names, [{"id": number, "note": f"n{number}"} for number in range(count)], verb="replace", writer="ingest.api"
    )


def rows(workspace: lakeward.Workspace, name: str) -> list[dict[str, object]]:
    return workspace.storage.read(workspace.tree.dataset(name)).read_all().to_pylist()


def query(workspace: lakeward.Workspace, text: str) -> list[dict[str, object]]:
    return [dict(row) for row in workspace.database.fetch(sqlalchemy.text(text))]


def test_from_a_folder_to_rows_on_both_arms(loaded: lakeward.Workspace, project: Callable[..., Project]) -> None:
    pipelines = loaded.pipelines
    folder = project(z_yml=BIG, a_sql=AFTER)
    assert pipelines.plan(folder).pending
    assert pipelines.applied() == {}
    assert [each.change for each in pipelines.apply(folder, "me").pipelines] == ["added", "added"]
    assert not pipelines.plan(folder).pending
    assert loaded.tree.find("main.m.big") is None
    seen: list[BuildProgress] = []
    results = pipelines.build(progress=seen.append)
    assert [(result.pipeline, len(result.transactions)) for result in results] == [("big", 2), ("after", 1)]
    assert rows(loaded, "main.m.big") == [
        {"id": 3, "amount": Decimal("3.0000"), "note": "n3"},
        {"id": 4, "amount": Decimal("4.0000"), "note": "n4"},
    ]
    assert rows(loaded, "main.m.totals") == [{"total": Decimal("7.0000"), "n": 2}]
    assert rows(loaded, "main.m.after") == [{"last": 4}]
    assert {name: loaded.tree.dataset(f"main.m.{name}").arm for name in ("big", "totals")} == {
        "big": "iceberg",
        "totals": "postgres",
    }
    assert loaded.tree.dataset("main.m.big").schema.primary_key == ("id",)
    assert BuildProgress("big", "main.m.big", 2) in seen
    assert query(
        loaded, "select action, subject, actor from lakeward.audit_log where action like 'pipeline%' order by id"
    ) == [
        {"action": "pipeline.apply", "subject": "after", "actor": "me"},
        {"action": "pipeline.apply", "subject": "big", "actor": "me"},
    ]


def test_outputs_of_one_pipeline_are_one_build_with_the_windows_it_read(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    """I03: the watermark of an output is what it read, and moves with the output's own commit."""
    loaded.pipelines.apply(project(z_yml=BIG))
    fill(loaded, 6)
    heads = {name: loaded.tree.dataset(f"main.raw.{name}") for name in ("orders", "names")}
    (result,) = loaded.pipelines.build(["big"])
    found = query(
        loaded,
        "select distinct build_id, pipeline, writer, windows::text as windows from lakeward.dataset_transactions "
        "where pipeline = 'big'",
    )
    assert [(row["build_id"], row["writer"]) for row in found] == [(result.build_id, "pipeline.output")]
    for record in heads.values():
        assert record.head_version > 1
        assert str(record.id) in str(found[0]["windows"])
        assert str(record.head_version) in str(found[0]["windows"])


def test_i03_a_failed_build_moves_no_watermark_and_the_next_one_reads_everything(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(z_yml=BIG))
    loaded.pipelines.build()
    before = query(loaded, "select * from lakeward.watermarks order by 1, 2")
    versions = {name: loaded.tree.dataset(f"main.m.{name}").head_version for name in ("big", "totals")}
    loaded.pipelines.apply(project(z_yml=BIG.replace("count(*) as n", "count(*) + any_value(('x' || id)::long) as n")))
    fill(loaded, 8)
    with pytest.raises(
        ComputeError, match=r"pipeline 'big', output main\.m\.totals: the query failed: Could not convert"
    ) as raised:
        loaded.pipelines.build()
    assert raised.value.safe == "dataset main.m.totals is unchanged"
    assert {name: loaded.tree.dataset(f"main.m.{name}").head_version for name in ("big", "totals")} == versions
    assert query(loaded, "select * from lakeward.watermarks order by 1, 2") == before
    assert len(rows(loaded, "main.m.big")) == 2
    loaded.pipelines.apply(project(z_yml=BIG))
    loaded.pipelines.build()
    assert len(rows(loaded, "main.m.big")) == 5
    assert rows(loaded, "main.m.totals") == [{"total": Decimal("25.0000"), "n": 5}]


def test_a_build_reads_the_versions_that_it_pinned(loaded: lakeward.Workspace, project: Callable[..., Project]) -> None:
    """A source that is written while a build runs does not reach it, and both outputs see one state."""
    loaded.pipelines.apply(project(z_yml=BIG))

    def write_meanwhile(progress: BuildProgress) -> None:
        if loaded.tree.dataset("main.raw.orders").row_count == 5:
            fill(loaded, 50)

    loaded.pipelines.build(progress=write_meanwhile)
    assert loaded.tree.dataset("main.raw.orders").row_count == 50
    assert len(rows(loaded, "main.m.big")) == 2
    assert rows(loaded, "main.m.totals") == [{"total": Decimal("7.0000"), "n": 2}]


def test_apply_removes_what_the_project_no_longer_has_and_leaves_its_datasets(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(z_yml=BIG, a_sql=AFTER))
    loaded.pipelines.build()
    plan = loaded.pipelines.apply(project(z_yml=BIG))
    assert [(each.name, each.change) for each in plan.pipelines] == [("big", "unchanged"), ("after", "removed")]
    assert list(loaded.pipelines.applied()) == ["big"]
    assert rows(loaded, "main.m.after") == [{"last": 4}]
    with pytest.raises(UnknownObject, match="pipeline 'after' is not applied; applied are big"):
        loaded.pipelines.build(["after"])


def test_a_build_runs_what_was_applied_and_not_what_the_file_says_now(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(z_yml=BIG))
    project(z_yml=BIG.replace("amount > 2", "amount > 3"))
    loaded.pipelines.build(["big"])
    assert len(rows(loaded, "main.m.big")) == 2


def test_nothing_applied_or_a_wrong_name_is_told(loaded: lakeward.Workspace, project: Callable[..., Project]) -> None:
    with pytest.raises(UnknownObject, match="no pipeline is applied") as raised:
        loaded.pipelines.build()
    assert raised.value.next_step == "lakeward apply"
    loaded.pipelines.apply(project(z_yml=BIG))
    with pytest.raises(UnknownObject, match="'bigg' is not applied") as raised:
        loaded.pipelines.build(["bigg"])
    assert "did you mean big?" in str(raised.value.next_step)


def test_a_source_without_rows_is_told_with_the_way_out(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(z_yml=BIG, a_sql=AFTER))
    loaded.tree.create_dataset("main.m.big", Schema.declare({"id": "long"}), actor="test")
    with pytest.raises(
        UnknownVersion, match=r"reads dataset main\.m\.big, to which nothing was ever written"
    ) as raised:
        loaded.pipelines.build(["after"])
    assert raised.value.next_step == "lakeward build big"


def test_an_output_that_got_other_columns_since_is_refused_before_anything_is_written(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(z_yml=BIG))
    loaded.tree.create_dataset("main.m.totals", Schema.declare({"total": "long"}), actor="test")
    with pytest.raises(
        SchemaError, match=r"pipeline big as applied: dataset main\.m\.totals exists with other columns"
    ):
        loaded.pipelines.build()
    found = loaded.tree.find("main.m.big")
    assert found is None or found.head_version == 0


def test_zero_rows_need_to_be_allowed(loaded: lakeward.Workspace, project: Callable[..., Project]) -> None:
    none = BIG.replace("amount > 2", "amount > 200")
    loaded.pipelines.apply(project(z_yml=none))
    with pytest.raises(EmptyReplace, match=r"main\.m\.big"):
        loaded.pipelines.build()
    loaded.pipelines.apply(project(z_yml=none.replace("primary_key: [id],", "primary_key: [id], allow_empty: true,")))
    loaded.pipelines.build()
    assert rows(loaded, "main.m.big") == []


def test_a_value_that_cannot_be_stored_is_named_with_its_dataset(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    text = BIG.replace("select id, amount, note", "select id, amount, note || chr(0) as note")
    loaded.pipelines.apply(project(z_yml=text))
    with pytest.raises(DataError, match=r"main\.m\.big") as raised:
        loaded.pipelines.build()
    assert isinstance(raised.value, ValueRefused)


def test_a_spec_of_another_form_is_told_and_replaced_by_apply(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    loaded.pipelines.apply(project(z_yml=BIG))
    query(loaded, "update lakeward.pipelines set spec = '{\"old\": 1}', fingerprint = 'x'")
    with pytest.raises(SpecError, match="was stored by another version"):
        loaded.pipelines.build(["big"])
    assert loaded.pipelines.apply(project(z_yml=BIG)).pending
    assert loaded.pipelines.build(["big"])


def test_s03_n01_odd_names_go_all_the_way(loaded: lakeward.Workspace, project: Callable[..., Project]) -> None:
    odd = 'x"; drop table t; --'
    text = f"""\
pipeline: "it's; drop table pipelines; --"
nodes:
  '{odd}': {{source: main.raw.orders}}
  "a'b": {{transform: 'select id as "two words", amount as "x""; drop table t; --" from "{odd.replace('"', '""')}"'}}
outputs:
  - {{dataset: 'main.m."o''dd.""name; --"', from: "a'b", strategy: replace, primary_key: [two words]}}
"""
    loaded.pipelines.apply(project(z_yml=text), "o'brien; --")
    (result,) = loaded.pipelines.build()
    assert result.pipeline == "it's; drop table pipelines; --"
    assert rows(loaded, 'main.m."o\'dd.""name; --"')[4] == {"two words": 4, odd: Decimal("4.0000")}
