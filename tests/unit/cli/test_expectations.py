"""`build` and `dataset expectations`: what was found is shown to people and programs, with the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from support.commands import Run

FILE = """\
-- pipeline: one
-- sources: {s: a.b.c}
-- output: a.b.d
-- strategy: replace
-- primary_key: [id]
-- expectations: [primary_key, {row: {check: "id < 3"}}, {not_null: {columns: [t], on_fail: quarantine}}]
select id, t from s
"""


@pytest.fixture
def project(opened: lakeward.Workspace, place: Path) -> Path:
    """A project folder around the current one, and its source dataset."""
    opened.create_dataset("a.b.c", {"id": "long", "t": "string"}).write([{"id": 1, "t": "x"}, {"id": 2, "t": None}])
    (place / "lakeward.toml").write_text("")
    (place / "pipelines").mkdir()
    (place / "pipelines" / "one.sql").write_text(FILE)
    return place / "pipelines"


def test_what_was_found_is_shown_for_every_version(
    run: Run, opened: lakeward.Workspace, project: Path, place: Path
) -> None:
    assert run("apply").code == 0
    assert run("dataset", "expectations", "a.b.c").out.startswith("nothing was judged")
    built = run("build")
    assert built.code == 0
    assert "warning: a.b.d: not_null (t is not null): 1 of 2 rows fail; they go to a.b.d__quarantine" in built.out
    assert "a.b.d__quarantine" in built.out
    opened.dataset("a.b.c").write([{"id": 7, "t": "\x1b[31m"}, {"id": 8, "t": "y"}])
    failed = run("build")
    assert failed.code == 5
    assert "a.b.d: row (id < 3): 2 of 3 rows fail: (id=7), (id=8)" in failed.err
    assert "a.b.d is unchanged at version 1" in failed.err
    document = run("build", "--output", "json").document
    assert (document["error"], document["exit_code"]) == ("ExpectationFailed", 5)
    [expectation] = document["fields"]["expectations"]
    assert (expectation["kind"], expectation["samples"]) == ("row", [{"id": "7"}, {"id": "8"}])
    shown = run("dataset", "expectations", "a.b.d")
    assert "version 3, not committed" in shown.out and "version 1, committed" in shown.out
    assert "    id 7" in shown.out
    versions = run("dataset", "expectations", "a.b.d", "--output", "json").document["versions"]
    assert [(each["version"], each["status"]) for each in versions] == [
        (3, "aborted"),
        (2, "aborted"),
        (1, "committed"),
    ]
    assert [each["outcome"] for each in versions[0]["results"]] == ["passed", "failed", "failed"]
    only = run("dataset", "expectations", "a.b.d", "--version", "1", "--output", "json").document["versions"]
    assert [each["version"] for each in only] == [1]
    assert "nothing was judged in version 9" in run("dataset", "expectations", "a.b.d", "--version", "9").out
    assert "expects  2 of 3 not as expected in version 3 (not committed)" in run("dataset", "show", "a.b.d").out
    assert run("dataset", "show", "a.b.d", "--output", "json").document["expectations"]["version"] == 3


def test_what_is_expected_of_no_column_is_told_by_plan(run: Run, project: Path) -> None:
    (project / "one.sql").write_text(FILE.replace("id < 3", "idd < 3"))
    planned = run("plan")
    assert planned.code == 2
    assert "pipelines/one.sql:6: expectation" in planned.err
