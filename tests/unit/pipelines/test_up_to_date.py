"""A pipeline whose outputs are up to date is left alone; anything else is built, and the reason is told."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy

import lakeward
from lakeward.errors import ComputeError
from lakeward.pipelines.project import Project
from lakeward.types.schema import Schema

PAIR = """\
pipeline: pair
nodes:
  a: {source: main.raw.a}
  b: {source: main.raw.b}
  ones: {transform: "select id from a"}
  pile: {transform: "select id from a union all select id from b"}
outputs:
  - {dataset: main.m.ones, from: ones, strategy: replace, arm: iceberg}
  - {dataset: main.m.pile, from: pile, strategy: replace}
"""
AFTER = """\
-- pipeline: after
-- sources: {pile: main.m.pile}
-- output: main.m.after
-- strategy: replace
select count(*) as n from pile
"""
ALL = ["after", "pair"]


@pytest.fixture
def built(workspace: lakeward.Workspace, project: Callable[..., Project]) -> lakeward.Workspace:
    """Two sources, on an arm each, and two pipelines that were built once."""
    for name, arm in (("a", "postgres"), ("b", "iceberg")):
        workspace.tree.create_dataset(f"main.raw.{name}", Schema.declare({"id": "long"}), arm=arm)
        workspace.dataset(f"main.raw.{name}").write([{"id": 1}, {"id": 2}])
    workspace.pipelines.apply(project(z_yml=PAIR, a_sql=AFTER))
    assert ran(workspace) == ALL
    return workspace


def ran(workspace: lakeward.Workspace, *names: str, full: bool = False) -> list[str]:
    """Build, and return the pipelines that were built, by name; what is said to be pending comes true."""
    pending = [pipeline.name for pipeline, _ in workspace.pipelines.pending(list(names) or None, full=full)]
    found = [result.pipeline for result in workspace.build(*names, full=full) if not result.up_to_date]
    assert found == pending
    return sorted(str(name) for name in found)


def reasons(workspace: lakeward.Workspace) -> dict[str, str]:
    return {pipeline.name: reason for pipeline, reason in workspace.pipelines.pending()}


def ledger_rows(workspace: lakeward.Workspace) -> int:
    return len(workspace.transactions(most=1000))


def test_nothing_to_do_leaves_no_trace(built: lakeward.Workspace) -> None:
    before = ledger_rows(built)
    results = built.build()
    assert [(result.pipeline, result.up_to_date, result.build_id, result.transactions) for result in results] == [
        ("pair", True, None, ()),
        ("after", True, None, ()),
    ]
    told = {"build_id": None, "pipeline": "pair", "up_to_date": True, "transactions": [], "warnings": []}
    assert results[0].to_json() == told
    assert ledger_rows(built) == before
    assert reasons(built) == {}


def test_full_builds_what_is_up_to_date(built: lakeward.Workspace) -> None:
    assert ran(built, "pair", full=True) == ["pair"]
    assert [output.version for output in map(built.dataset, ("main.m.ones", "main.m.pile"))] == [2, 2]
    assert reasons(built) == {"after": "main.m.pile changed since main.m.after was built"}
    assert ran(built) == ["after"]
    assert ran(built, full=True) == ALL


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("a", "main.raw.a changed since main.m.ones was built"),
        ("b", "main.raw.b changed since main.m.pile was built"),
    ],
)
def test_a_source_that_was_written_is_read_again(built: lakeward.Workspace, source: str, why: str) -> None:
    """Also where only one of two outputs reads it: they are one build."""
    built.dataset(f"main.raw.{source}").write([{"id": 3}])
    assert reasons(built) == {"pair": why, "after": "main.m.pile is built before"}
    assert ran(built) == ALL
    assert built.dataset("main.m.after").to_arrow().to_pylist() == [{"n": 5}]
    assert ran(built) == []


def test_a_write_that_adds_no_row_and_one_that_fails_change_nothing(built: lakeward.Workspace) -> None:
    built.dataset("main.raw.a").write([])
    with pytest.raises(lakeward.errors.DataError):
        built.dataset("main.raw.a").write([{"id": "x"}])
    assert ran(built) == []


def test_a_copy_of_a_source_or_an_output_changes_no_row(built: lakeward.Workspace) -> None:
    for name, arm in (("main.raw.a", "iceberg"), ("main.raw.b", "postgres"), ("main.m.pile", "iceberg")):
        dataset = built.dataset(name)
        version = dataset.version
        dataset.copy_to(arm)
        assert dataset.version == version + 1
    watermarks = built.database.fetch(sqlalchemy.text("select * from lakeward.watermarks order by 1, 2"))
    assert ran(built) == []
    assert built.database.fetch(sqlalchemy.text("select * from lakeward.watermarks order by 1, 2")) == watermarks
    built.dataset("main.raw.b").write([{"id": 3}])
    assert ran(built) == ALL
    assert ran(built) == []


def test_a_write_after_a_copy_and_before_another_counts(built: lakeward.Workspace) -> None:
    source = built.dataset("main.raw.a")
    source.copy_to("iceberg")
    source.write([{"id": 3}])
    source.copy_to("iceberg")
    assert ran(built) == ALL


def test_an_output_that_was_written_by_hand_is_built(built: lakeward.Workspace) -> None:
    built.dataset("main.m.pile").write([{"id": 99}])
    assert reasons(built)["pair"] == "main.m.pile was last written by hand"
    assert ran(built) == ALL
    assert built.dataset("main.m.after").to_arrow().to_pylist() == [{"n": 4}]


def test_a_changed_pipeline_is_built_and_one_that_only_looks_different_is_not(
    built: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    built.pipelines.apply(project(z_yml=PAIR.replace('select id from a"', 'SELECT  id -- same\\nFROM a"'), a_sql=AFTER))
    assert ran(built) == []
    built.pipelines.apply(project(z_yml=PAIR, a_sql=AFTER.replace("count(*)", "count(*) + 1")))
    assert reasons(built) == {"after": "the pipeline is not the one that wrote main.m.after"}
    assert ran(built) == ["after"]
    # What it was before is a change, too.
    built.pipelines.apply(project(z_yml=PAIR, a_sql=AFTER))
    assert ran(built) == ["after"]
    assert built.dataset("main.m.after").to_arrow().to_pylist() == [{"n": 4}]


def test_a_changed_file_counts_when_it_is_applied(built: lakeward.Workspace, project: Callable[..., Project]) -> None:
    project(z_yml=PAIR, a_sql=AFTER.replace("count(*)", "count(*) + 1"))
    assert ran(built) == []


def test_i03_a_build_that_failed_is_repeated(built: lakeward.Workspace, project: Callable[..., Project]) -> None:
    bad = AFTER.replace("count(*) as n", "count(*) + max(('x' || id)::int) as n")
    built.pipelines.apply(project(z_yml=PAIR, a_sql=bad))
    for _ in range(2):
        with pytest.raises(ComputeError):
            built.build()
    built.pipelines.apply(project(z_yml=PAIR, a_sql=AFTER))
    assert ran(built) == [], "the last committed build is this one's"


def test_a_source_that_is_written_while_it_is_read_is_read_again(built: lakeward.Workspace) -> None:
    built.dataset("main.raw.a").write([{"id": 3}])

    def write_meanwhile(_: object) -> None:
        if built.dataset("main.raw.b").row_count == 2:
            built.dataset("main.raw.b").write([{"id": 4}])

    built.build(progress=write_meanwhile)
    assert built.dataset("main.m.pile").row_count == 5
    assert ran(built) == ALL
    assert built.dataset("main.m.pile").row_count == 6


def test_a_version_that_could_not_be_published_is_published(built: lakeward.Workspace) -> None:
    statement = "update lakeward.dataset_transactions set published_at = null where dataset_id = {} and version = 1"
    built.database.fetch(sqlalchemy.text(statement.format(built.dataset("main.m.ones").record.id)))
    assert len(built.recoverable()) == 1
    assert ran(built) == []
    assert built.recoverable() == []


def test_what_depends_on_chance_is_up_to_date_until_it_is_asked_for_in_full(
    built: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    dice = AFTER.replace("main.m.after", "main.m.dice").replace("count(*)", "any_value(random())")
    built.pipelines.apply(project(z_yml=PAIR, a_sql=dice))
    assert ran(built) == ["after"]
    assert ran(built) == []
    thrown = built.dataset("main.m.dice").to_arrow().to_pylist()
    assert ran(built, "after", full=True) == ["after"]
    assert built.dataset("main.m.dice").to_arrow().to_pylist() != thrown
