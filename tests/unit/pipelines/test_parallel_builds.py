"""Builds in parallel on both arms: the same rows as one by one, failures kept apart, and nothing left by Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable

import pytest

import lakeward
from lakeward.errors import ExpectationFailed
from lakeward.pipelines.build import BuildProgress
from lakeward.pipelines.project import Project


def pipeline(name: str, reads: str, sql: str, arm: str, **header: str) -> str:
    more = "".join(f"-- {key}: {value}\n" for key, value in header.items())
    return (
        f"-- pipeline: {name}\n-- sources: {{s: {reads}}}\n-- output: main.m.{name}\n-- strategy: replace\n"
        f"-- primary_key: [id]\n-- arm: {arm}\n{more}{sql}\n"
    )


@pytest.fixture
def loaded(workspace: lakeward.Workspace) -> lakeward.Workspace:
    """A workspace with 3,000 rows."""
    workspace.create_dataset("main.raw.s", {"id": "long"}, arm="iceberg").write([{"id": n} for n in range(3_000)])
    return workspace


def test_eight_at_four_a_time_on_both_arms_give_what_one_by_one_gives(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    files = {
        f"p{n}_sql": pipeline(
            f"p{n}", "main.raw.s", f"select id, id * {n} as v from s order by id", ("postgres", "iceberg")[n % 2],
            expectations="[primary_key]",
        )
        for n in range(8)
    }  # fmt: skip
    loaded.pipelines.apply(project(**files))
    told: list[tuple[int, BuildProgress]] = []
    at_a_time: list[int] = []
    under_way: set[str] = set()

    def progress(each: BuildProgress) -> None:
        (under_way.discard if each.ended else under_way.add)(each.pipeline)
        at_a_time.append(len(under_way))
        told.append((threading.get_ident(), each))

    results = loaded.build(jobs=4, progress=progress)
    assert [result.pipeline for result in results] == [f"p{n}" for n in range(8)]
    assert len({thread for thread, _ in told}) > 1 and 1 < max(at_a_time) <= 4 and not under_way
    digests = {name: loaded.dataset(name).digest() for name in (f"main.m.p{n}" for n in range(8))}
    loaded.build(full=True, jobs=1)
    assert {name: loaded.dataset(name).digest() for name in digests} == digests
    assert loaded.dataset("main.m.p7").preview(1).to_pylist() == [{"id": 0, "v": 0}]


def test_a_failure_in_a_chain_skips_the_rest_of_it_and_builds_the_others(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    bad = "[{row: {check: 'id < 10'}}]"
    loaded.pipelines.apply(
        project(
            a_sql=pipeline("a", "main.raw.s", "select id from s", "iceberg"),
            b_sql=pipeline("b", "main.m.a", "select id from s", "postgres", expectations=bad),
            c_sql=pipeline("c", "main.m.b", "select id from s", "iceberg"),
            d_sql=pipeline("d", "main.raw.s", "select id from s", "postgres"),
            e_sql=pipeline("e", "main.m.d", "select id from s", "iceberg"),
        )
    )
    with pytest.raises(ExpectationFailed) as raised:
        loaded.build(jobs=4)
    assert raised.value.exit_code == 5
    assert raised.value.__notes__ == ["pipeline 'c' was skipped: it reads what pipeline 'b' writes, which failed"]
    assert {record.name: record.head_version for record in loaded.tree.datasets()} == {
        "main.raw.s": 1, "main.m.a": 1, "main.m.b": 0, "main.m.d": 1, "main.m.e": 1,
    }  # fmt: skip


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_stops_all_that_is_being_built_and_leaves_nothing(
    loaded: lakeward.Workspace, project: Callable[..., Project]
) -> None:
    endless = "select n as id from range(1000000000000) as t(n) where n < 200000 or n % 7 = 8"
    files = {
        f"{name}_sql": pipeline(name, "main.raw.s", endless, arm) for name, arm in (("a", "iceberg"), ("b", "postgres"))
    }
    loaded.pipelines.apply(project(**files))
    under_way: set[str] = set()

    def interrupt(each: BuildProgress) -> None:
        before = len(under_way)
        under_way.add(each.pipeline)
        if before < len(under_way) == 2:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        loaded.build(jobs=2, progress=interrupt)
    assert [each.status for each in loaded.transactions()] == ["aborted", "aborted", "committed"]
    assert [loaded.dataset(f"main.m.{name}").version for name in "ab"] == [0, 0]
    assert not [each for each in threading.enumerate() if each.name.startswith("lakeward-build")]
