"""Watching: a build for every change, none without one, and failures that are tried again when something changes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import lakeward
from lakeward.errors import ComputeError, LakewardError, LeaseLost, UnknownObject
from lakeward.pipelines.project import Project
from lakeward.pipelines.schedule import Builds
from lakeward.pipelines.watch import Outcome, Watch
from lakeward.storage.requests import BuildResult

SPEC = """\
-- pipeline: copy
-- sources: {s: main.raw.s}
-- output: main.m.copy
-- strategy: snapshot_replace
-- primary_key: [id]
select id::bigint as id, t::bigint as n from s
"""


class Script:
    """A clock whose every sleep does the next thing; at the end of them it stops the watch."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self.steps = iter(steps)
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        next(self.steps)()


def run(outcomes: Iterator[Outcome]) -> list[object]:
    """What each build wrote, or how it failed, until the script is over."""
    found: list[object] = []
    with pytest.raises(RuntimeError, match="StopIteration"):
        for outcome in outcomes:
            if isinstance(outcome, LakewardError):
                found.append(type(outcome))
            else:
                found += [(each.verb, each.rows_in) for result in outcome for each in result.transactions]
    return found


def test_every_change_is_built_once_and_a_failure_when_something_changes(
    workspace: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    source = workspace.create_dataset("main.raw.s", {"id": "long", "t": "string"}, ["id"])
    source.write([{"id": 1, "t": "1"}])
    workspace.pipelines.apply(project(a_sql=SPEC))
    idle = lambda: None  # noqa: E731
    clock = Script(
        idle,
        idle,
        lambda: source.write([{"id": 2, "t": "2"}, {"id": 3, "t": "3"}]),
        idle,
        lambda: source.write([{"id": 4, "t": "x"}]),
        idle,
        idle,
        lambda: source.write([{"id": 4, "t": "4"}], mode="upsert"),
        idle,
    )
    found = run(workspace.pipelines.watch(seconds=7, clock=clock))
    assert found == [("upsert", 1), ("upsert", 2), ComputeError, ("upsert", 1)]
    assert workspace.dataset("main.m.copy").row_count == 4
    assert set(clock.slept) == {7}


def test_what_is_applied_while_watching_is_built(
    workspace: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    workspace.create_dataset("main.raw.s", {"id": "long", "t": "string"}, ["id"]).write([{"id": 1, "t": "1"}])
    workspace.pipelines.apply(project(a_sql=SPEC))
    changed = SPEC.replace("t::bigint", "t::bigint + 1")
    clock = Script(lambda: workspace.pipelines.apply(project(a_sql=changed)), lambda: None)
    assert run(workspace.pipelines.watch(clock=clock)) == [("upsert", 1), ("upsert", 1)]
    with pytest.raises(UnknownObject):
        workspace.pipelines.watch(["nope"])


def test_a_conflict_is_tried_again_although_nothing_changed() -> None:
    tries = iter([LeaseLost("held"), LeaseLost("held"), None])

    def build() -> Builds:
        error = next(tries)
        return Builds({"one": BuildResult(None, "one", ())}, {"two": error} if error is not None else {})

    nothing = [lambda: None] * 4
    assert run(Watch(lambda: 1, build, Script(*nothing)).outcomes()) == [LeaseLost, LeaseLost]
    assert next(tries, "over") == "over"
