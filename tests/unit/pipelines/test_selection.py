"""Which pipelines a selector means."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.errors import SpecError, UnknownObject
from lakeward.pipelines.project import Project
from lakeward.pipelines.selection import select_pipelines
from lakeward.pipelines.spec import Pipeline

FILES = {
    "raw": ([], "daily"),
    "other": ([], "weekly"),
    "mid": (["raw"], "daily"),
    "top": (["mid", "other"], "x"),
    "side": (["raw"], "x"),
    "raw+": ([], "x"),
}


def text(name: str, reads: list[str], tag: str) -> str:
    nodes = ", ".join(f"r{number}: {{source: main.m.{each}}}" for number, each in enumerate(reads))
    first = "r0" if reads else "q"
    more = "" if reads else 'q: {transform: "select 1::bigint as n"}'
    return (
        f"pipeline: {name}\nnodes: {{{nodes}{more}}}\n"
        f"outputs: [{{dataset: main.m.{name.replace('+', '_')}, from: {first}, strategy: replace}}]\ntags: [{tag}]\n"
    )


@pytest.fixture
def pipelines(project: Callable[..., Project]) -> tuple[Pipeline, ...]:
    return project(**{f"f{n}_yml": text(name, *facts) for n, (name, facts) in enumerate(FILES.items())}).pipelines


@pytest.mark.parametrize(
    ("selectors", "names"),
    [
        (["mid"], "mid"),
        (["+mid"], "mid raw"),
        (["mid+"], "mid top"),
        (["+mid+"], "mid raw top"),
        (["+top"], "mid other raw top"),
        (["tag:daily"], "mid raw"),
        (["tag:daily+"], "mid raw side top"),
        (["+tag:x"], "mid other raw raw+ side top"),
        (["other", "+mid", "mid"], "mid other raw"),
        (["raw+"], "raw+"),
        (["raw++"], "raw+"),
        (["+raw+"], "raw+"),
    ],
)
def test_what_is_meant(pipelines: tuple[Pipeline, ...], selectors: list[str], names: str) -> None:
    found = select_pipelines(selectors, pipelines)
    assert " ".join(sorted(found)) == names
    assert len(set(found)) == len(found)


@pytest.mark.parametrize(
    ("selector", "says", "near"),
    [
        ("+mdi", "pipeline 'mdi' is not applied; there are mid, other", "did you mean mid?"),
        ("tag:dayly+", "no applied pipeline has the tag 'dayly'", "did you mean tag:daily?"),
        ("", "pipeline '' is not applied", "lakeward apply"),
    ],
)
def test_what_is_unknown_is_told_with_the_nearest(
    pipelines: tuple[Pipeline, ...], selector: str, says: str, near: str
) -> None:
    with pytest.raises(UnknownObject) as raised:
        select_pipelines([selector], pipelines)
    assert says in raised.value.message
    assert near in str(raised.value.next_step)


def test_a_selection_is_built_in_order_and_nothing_else(
    workspace: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    files = {f"f{n}_yml": text(name, *facts) for n, (name, facts) in enumerate(FILES.items())}
    workspace.pipelines.apply(project(**{key: files[key] for key in ("f0_yml", "f1_yml")}))
    workspace.build()
    workspace.pipelines.apply(project(**files))
    assert [each.pipeline for each in workspace.build(select=["tag:daily"])] == ["raw", "mid"]
    pending = workspace.pipelines.pending(select=["mid+", "side"], full=True)
    assert [each.name for each, _ in pending] == ["mid", "side", "top"]
    built = workspace.build("side", select=["+top"], full=True)
    assert [each.pipeline for each in built] == ["raw", "mid", "other", "side", "top"]
    with pytest.raises(UnknownObject, match="there are mid"):
        workspace.build(select=["+nope"])


def test_tags_are_stored_and_change_no_build(workspace: lakeward.Workspace, project: Callable[..., Project]) -> None:
    workspace.pipelines.apply(project(a_yml=text("raw", [], "daily")))
    workspace.build()
    assert workspace.build(select=["tag:daily"])[0].up_to_date
    plan = workspace.pipelines.apply(project(a_yml=text("raw", [], "nightly")))
    assert [(each.change, each.reason) for each in plan.pipelines] == [("changed", "tags changed")]
    assert not workspace.pipelines.plan(project(a_yml=text("raw", [], "nightly"))).pending
    assert workspace.build(select=["tag:nightly"])[0].up_to_date
    with pytest.raises(UnknownObject, match="'daily'"):
        workspace.build(select=["tag:daily"])


@pytest.mark.parametrize(
    ("tags", "says"),
    [("daily", "should be a list"), ("[1]", "should be text"), ("[a, a]", "stands twice"), ('[""]', "should be text")],
)
def test_tags_are_a_list_of_names(project: Callable[..., Project], tags: str, says: str) -> None:
    with pytest.raises(SpecError, match=says) as raised:
        project(a_yml=text("raw", [], "x").replace("[x]", tags))
    assert raised.value.fields["line"] == 4


def test_a_sql_file_has_tags_too(project: Callable[..., Project]) -> None:
    header = "-- pipeline: one\n-- sources: {}\n-- output: a.b.c\n-- strategy: replace\n-- tags: [daily, 'at night']\n"
    (one,) = project(a_sql=f"{header}select 1 as n\n").pipelines
    assert one.spec.tags == ["daily", "at night"]
