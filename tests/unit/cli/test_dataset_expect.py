"""`lakeward dataset expect`: what a dataset's rows have to be, declared, shown, judged by commands and taken back."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from support.commands import Run

EXPECTED = """\
expectations:
  - primary_key
  - row: {check: "id < 100"}
  - not_null: {columns: [note], on_fail: warn}
"""


@pytest.fixture
def dataset(opened: lakeward.Workspace) -> lakeward.Dataset:
    return opened.create_dataset("a.b.c", {"id": "long", "note": "string"}, ["id"], arm="iceberg")


def test_a_declaration_is_shown_judged_and_taken_back(run: Run, place: Path, dataset: lakeward.Dataset) -> None:
    (place / "e.yml").write_text(EXPECTED)
    (place / "bad.csv").write_text("id,note\n1,a\n101,b\n")
    (place / "odd.csv").write_text("id,note\n1,a\n2,\n")
    assert run("dataset", "expect", "a.b.c").out.startswith("nothing is expected of a.b.c")
    planned = run("dataset", "expect", "a.b.c", "e.yml", "--dry-run")
    assert "1. expect of a.b.c: primary_key" in planned.out and dataset.expected() == []
    assert "a.b.c: 3 expectations, judged in every later version" in run("dataset", "expect", "a.b.c", "e.yml").out
    assert run("dataset", "expect", "a.b.c", "e.yml", "--dry-run").out == "nothing to do\n"
    assert '- {"row": {"check": "id < 100"}}' in run("dataset", "expect", "a.b.c", "--show").out
    refused = run("dataset", "import", "a.b.c", "bad.csv")
    assert refused.code == 5 and "row (id < 100): 1 of 2 rows fail: (id=101)" in refused.err
    assert "a.b.c has no version, as before" in refused.err
    told = run("dataset", "import", "a.b.c", "odd.csv")
    assert told.code == 0 and "warning: not_null (note is not null): 1 of 2 rows fail: (id=2)" in told.out
    shown = run("dataset", "expectations", "a.b.c")
    assert "version 1, not committed" in shown.out and "version 2, committed" in shown.out
    cleared = run("dataset", "expect", "a.b.c", "--clear", "--output", "json").document
    assert (cleared["expectations"], cleared["changed"]) == ([], True)
    assert run("dataset", "import", "a.b.c", "bad.csv", "--mode", "upsert").code == 0


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("- row: {check: 'nothing < 1'}\n", "e.yml:1"),
        ("\nexpectations:\n  - primary_key\n  - row: {check: 'id', on_fail: quarantine}\n", "e.yml:4"),
        ("- primary_key\n- not_null: {columns: [id], on_fail: quarantine}\n", "e.yml:2: a dataset's own expectations"),
        ("expectations: 7\n", "e.yml:1: there is no list under 'expectations'"),
        ("outputs: []\n", "e.yml:1: 'outputs' is not read here"),
        ("", "e.yml:1: the file is empty"),
        ("- [\n", "not valid YAML"),
        ("- primary_key: {}\n  primary_key: {}\n", "stands twice"),
    ],
)
def test_a_file_that_is_wrong_is_refused_by_line(
    run: Run, place: Path, dataset: lakeward.Dataset, text: str, says: str
) -> None:
    (place / "e.yml").write_text(text)
    refused = run("dataset", "expect", "a.b.c", "e.yml")
    assert refused.code == 2 and says in refused.err and "Next: " in refused.err, refused.err
    assert dataset.expected() == []


def test_one_thing_at_a_time(run: Run, place: Path, dataset: lakeward.Dataset) -> None:
    assert run("dataset", "expect", "a.b.c", "e.yml", "--clear").code == 2
    assert run("dataset", "expect", "a.b.c", "e.yml").code == 2, "there is no file"
    (place / "e.yml").write_text("- primary_key\n")
    assert run("dataset", "expect", "a.b.c", "e.yml").code == 0
    assert dataset.expected() == ["primary_key"], "a list alone"
