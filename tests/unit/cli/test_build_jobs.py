"""`build --jobs`: what was built, what failed and what was skipped, for people and programs; and Ctrl-C."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from support.commands import Run

HEADER = "-- pipeline: {0}\n-- sources: {{s: a.b.{1}}}\n-- output: a.b.{0}\n-- strategy: replace\n"


@pytest.fixture
def project(opened: lakeward.Workspace, place: Path) -> Path:
    """A project of a chain with a failure in its middle, and of two others."""
    opened.create_dataset("a.b.c", {"id": "long"}).write([{"id": 1}, {"id": 2}])
    (place / "lakeward.toml").write_text("[build]\njobs = 3\n")
    (place / "pipelines").mkdir()
    bad = "-- expectations: [{row: {check: 'id < 2'}}]\n"
    for name, reads, more in (("p1", "c", ""), ("p2", "p1", bad), ("p3", "p2", ""), ("q", "c", ""), ("r", "c", bad)):
        (place / "pipelines" / f"{name}.sql").write_text(f"{HEADER.format(name, reads)}{more}select id from s\n")
    return place


def test_a_failure_is_told_with_all_others_and_what_was_skipped(run: Run, project: Path) -> None:
    assert run("apply").code == 0
    failed = run("build")
    assert failed.code == 5
    assert [line.split()[0] for line in failed.out.splitlines()[2:4]] == ["p1", "q"]
    assert failed.err.startswith("Error: pipeline 'p2' was not built: 1 of its expectations failed")
    assert "\npipeline 'r' failed, too: pipeline 'r' was not built" in failed.err
    assert "\npipeline 'p3' was skipped: it reads what pipeline 'p2' writes, which failed" in failed.err
    document = run("build", "--full", "--jobs", "2", "--output", "json").document
    assert (document["error"], document["exit_code"]) == ("ExpectationFailed", 5)
    fields = document["fields"]
    assert [each["pipeline"] for each in fields["builds"]] == ["p1", "q"]
    assert [(each["pipeline"], each["exit_code"]) for each in fields["failures"]] == [("r", 5)]
    assert [each["pipeline"] for each in fields["skipped"]] == ["p3"]
    fast = run("build", "--full", "--jobs", "1", "--fail-fast")
    assert fast.code == 5 and "pipeline 'q' was skipped: pipeline 'p2' had failed before it was started" in fast.err
    assert run("build", "--jobs", "17").code == 2


def test_a_dry_run_and_a_selection_are_those_of_one_job(run: Run, project: Path) -> None:
    p2 = project / "pipelines" / "p2.sql"
    p2.write_text(f"-- schedule: 0 6 * * *\n{p2.read_text()}")
    assert run("apply").code == 0
    planned = run("build", "--select", "+p2", "--jobs", "3", "--dry-run")
    assert [line.split("pipeline ")[1].split(")")[0] for line in planned.out.splitlines()[:2]] == [
        "p1",
        "p2, schedule 0 6 * * *",
    ]
    assert [each["pipeline"] for each in run("build", "q", "p1", "-j", "2", "--output", "json").document["builds"]] == [
        "p1",
        "q",
    ]
