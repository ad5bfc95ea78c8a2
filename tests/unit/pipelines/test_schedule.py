"""The order of builds: after what they wait for, some at a time, and not after a failure of it."""

from __future__ import annotations

import signal
import threading
from contextlib import suppress

import pytest

from lakeward import stopping
from lakeward.errors import ComputeError, DatabaseUnavailable, ExpectationFailed, LakewardError, Stopped
from lakeward.pipelines.schedule import Builds, Schedule
from lakeward.storage.requests import BuildResult

EDGES = {"a": (), "b": ("a",), "c": ("b",), "d": (), "e": ("d", "c"), "f": ("outside",)}
ORDER = tuple(EDGES)
PATIENCE = 20


def run(jobs: int, failing: dict[str, LakewardError], *, fail_fast: bool = False) -> tuple[Builds, list[str]]:
    """Build all, of which some fail; and say what was started, in which order."""
    started: list[str] = []

    def build(name: str) -> BuildResult:
        started.append(name)
        if name in failing:
            raise failing[name]
        return BuildResult(None, name, ())

    return Schedule(ORDER, EDGES, jobs=jobs, fail_fast=fail_fast).run(build), started


@pytest.mark.parametrize("jobs", [1, 3])
def test_each_is_built_after_what_it_waits_for_and_results_are_in_order(jobs: int) -> None:
    builds, started = run(jobs, {})
    assert [result.pipeline for result in builds.checked()] == list(ORDER)
    assert all(started.index(before) < started.index(name) for name in "bce" for before in EDGES[name])


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_failure_keeps_from_being_built_what_reads_it_and_nothing_else(jobs: int) -> None:
    first, second = ExpectationFailed("bad rows"), ComputeError("no")
    builds, _ = run(jobs, {"b": first, "f": second})
    assert list(builds.results) == ["a", "d"]
    assert builds.skipped == {
        "c": "it reads what pipeline 'b' writes, which failed",
        "e": "it reads what pipeline 'c' writes, which was skipped",
    }
    with pytest.raises(ExpectationFailed) as raised:
        builds.checked()
    assert raised.value is first
    assert raised.value.__notes__ == [
        "pipeline 'f' failed, too: no",
        "pipeline 'c' was skipped: it reads what pipeline 'b' writes, which failed",
        "pipeline 'e' was skipped: it reads what pipeline 'c' writes, which was skipped",
    ]
    fields = first.to_json()["fields"]
    assert isinstance(fields, dict) and sorted(fields) == ["builds", "failures", "skipped"]
    assert [each["pipeline"] for each in fields["builds"]] == ["a", "d"]
    assert [(each["pipeline"], each["error"]) for each in fields["failures"]] == [("f", "ComputeError")]
    assert [each["pipeline"] for each in fields["skipped"]] == ["c", "e"]


@pytest.mark.parametrize(("error", "fail_fast"), [(ComputeError("no"), True), (DatabaseUnavailable("gone"), False)])
def test_no_other_one_is_started_when_asked_or_when_none_could_go_well(error: LakewardError, fail_fast: bool) -> None:
    builds, started = run(1, {"a": error}, fail_fast=fail_fast)
    assert started == ["a"] and list(builds.skipped) == list("bcdef")
    assert builds.skipped["d"] == "pipeline 'a' had failed before it was started"


def test_so_many_are_built_at_a_time_as_are_asked_for_and_can_be() -> None:
    assert [Schedule(ORDER, EDGES, jobs=jobs).width for jobs in (1, 2, 8)] == [1, 2, 3]
    chain = {"a": (), "b": ("a",), "c": ("b",)}
    assert Schedule("abc", chain, jobs=4).width == 1
    barrier = threading.Barrier(4)
    independent = dict.fromkeys("abcdefgh", ())

    def build(name: str) -> BuildResult:
        # Broken, and so an error, if fewer than four are under way.
        barrier.wait(PATIENCE)
        return BuildResult(None, name, ())

    assert list(Schedule(list(independent), independent, jobs=4).run(build).results) == list("abcdefgh")


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("failing", [False, True], ids=["ctrl-c", "unforeseen"])
def test_an_interruption_stops_what_is_being_built_and_is_raised_after_that(failing: bool) -> None:
    running = threading.Barrier(2)
    ended: list[str] = []

    def build(name: str) -> BuildResult:
        running.wait(PATIENCE)
        if name == "a":
            if failing:
                raise ZeroDivisionError
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        with suppress(Stopped):
            while True:
                stopping.check()
        ended.append(name)
        return BuildResult(None, name, ())

    schedule = Schedule("abc", dict.fromkeys("abc", ()), jobs=2)
    with pytest.raises(ZeroDivisionError if failing else KeyboardInterrupt):
        schedule.run(build)
    assert sorted(ended) == (["b"] if failing else ["a", "b"])
