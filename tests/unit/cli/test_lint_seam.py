"""`lakeward lint-seam`: the counts of a baseline can only fall, and every step from one to the next is named."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from lakeward.migration.seam import Baseline
from support.commands import Run

LEAK = "q = 'SELECT a FROM dataset_rows'\n"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A code base with two leaks and an allowed folder. There is no workspace, and no database."""
    for name in [name for name in os.environ if name.startswith("LAKEWARD_")]:
        monkeypatch.delenv(name)
    for name, content in {"a.py": LEAK, "b/c.py": LEAK + LEAK, "b/d.py": "x = 1\n", "storage/rows.py": LEAK}.items():
        file = tmp_path / "src" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def baseline(run: Run, place: Path) -> Path:
    """The baseline of that code base."""
    assert run("lint-seam", "src", "--allow", "src/storage/**", "--update").code == 0
    return place / "lint-seam.json"


def test_the_first_run_names_everything_and_how_to_begin(run: Run, place: Path) -> None:
    ran = run("lint-seam", "src", "--allow", "src/storage/**")
    assert (ran.code, ran.err) == (1, "")
    assert ran.out.splitlines() == [
        "src/a.py: 1 raw access, 0 allowed",
        "  src/a.py:1  select  q = 'SELECT a FROM dataset_rows'",
        "src/b/c.py: 2 raw accesses, 0 allowed",
        "  src/b/c.py:1  select  q = 'SELECT a FROM dataset_rows'",
        "  src/b/c.py:2  select  q = 'SELECT a FROM dataset_rows'",
        "3 raw accesses to lakeward.dataset_rows in 2 files; there is no baseline lint-seam.json yet",
        "Next: lakeward lint-seam src --allow 'src/storage/**' --update",
    ]
    assert not (place / "lint-seam.json").exists()


def test_the_baseline_is_sorted_with_a_line_per_file_and_written_once(run: Run, baseline: Path) -> None:
    assert baseline.read_text() == (
        '{\n  "tables": [\n    "lakeward.dataset_rows"\n  ],\n  "allow": [\n    "src/storage/**"\n  ],\n'
        '  "files": {\n    "src/a.py": 1,\n    "src/b/c.py": 2\n  }\n}\n'
    )
    ran = run("lint-seam", "src")
    assert (ran.code, ran.out) == (0, "3 raw accesses to lakeward.dataset_rows in 2 files; as lint-seam.json says\n")
    inode = baseline.stat().st_ino
    assert "lint-seam.json says so already" in run("lint-seam", "src", "--update").out
    assert baseline.stat().st_ino == inode


def test_a_rise_fails_and_no_update_hides_it(run: Run, place: Path, baseline: Path) -> None:
    before = baseline.read_text()
    (place / "src/b/d.py").write_text("\nx.dataset_rows\n")
    (place / "src/a.py").unlink()
    ran = run("lint-seam", "src", "--output", "json")
    assert ran.code == 1 and ran.document["ok"] is False
    assert ran.document["changes"] == [
        {"file": "src/a.py", "change": "gone", "count": 0, "allowed": 1},
        {"file": "src/b/d.py", "change": "new", "count": 1, "allowed": 0},
    ]
    assert ran.document["files"] == {"src/b/c.py": 2, "src/b/d.py": 1}
    assert ran.document["accesses"][-1] == {
        "file": "src/b/d.py",
        "line": 2,
        "kind": "name",
        "table": "lakeward.dataset_rows",
        "snippet": "x.dataset_rows",
    }
    refused = run("lint-seam", "src", "--update")
    assert refused.code == 1 and "lint-seam.json is unchanged, since counts would rise" in refused.out
    assert refused.out.endswith("Next: if that can't be: lakeward lint-seam src --update --allow-increase\n")
    assert baseline.read_text() == before
    assert run("lint-seam", "src", "--update", "--allow-increase").code == 0
    assert run("lint-seam", "src").code == 0


def test_a_fall_fails_until_the_baseline_is_lowered(run: Run, place: Path, baseline: Path) -> None:
    (place / "src/b/c.py").write_text(LEAK)
    (place / "src/a.py").unlink()
    ran = run("lint-seam", "src")
    assert ran.code == 1
    assert ran.out.splitlines() == [
        "src/a.py: no longer there, 1 allowed",
        "src/b/c.py: 1 raw access, 2 allowed",
        "1 raw access to lakeward.dataset_rows in 1 file; 2 files with less than lint-seam.json says",
        "Next: lakeward lint-seam src --update",
    ]
    assert run("lint-seam", "src", "--update").out.endswith("lint-seam.json is written\n")
    assert json.loads(baseline.read_text())["files"] == {"src/b/c.py": 1}


def test_a_part_is_judged_by_its_own_lines(run: Run, place: Path, baseline: Path) -> None:
    (place / "src/a.py").unlink()
    assert run("lint-seam", "src/b").code == 0
    (place / "src/b/c.py").write_text("")
    assert run("lint-seam", "src/b", "--update").code == 0
    assert json.loads(baseline.read_text())["files"] == {"src/a.py": 1}


def test_what_is_looked_for_is_changed_in_the_baseline_only(run: Run, place: Path, baseline: Path) -> None:
    for option, value in (("--allow", "src/**"), ("--table", "other")):
        ran = run("lint-seam", "src", option, value)
        assert ran.code == 2 and f"not for {value}" in ran.err and "--update" in ran.err
    assert run("lint-seam", "src", "--allow", "src/b/**", "--allow", "src/storage/**", "--update").code == 0
    assert Baseline.read(baseline) == Baseline(
        ("lakeward.dataset_rows",), ("src/b/**", "src/storage/**"), {"src/a.py": 1}
    )
    assert run("lint-seam", "src", "--allow", "src/storage/**", "--update").code == 1, "a narrower glob is a rise"


def test_a_file_that_can_not_be_read_keeps_its_count(run: Run, place: Path, baseline: Path) -> None:
    file = place / "src/b/c.py"
    file.write_text("def f(:\n" + LEAK + LEAK)
    ran = run("lint-seam", "src")
    assert ran.code == 0 and "warning: src/b/c.py: is no Python that can be parsed (line 1: " in ran.out
    if os.getuid() != 0:
        file.chmod(0)
        ran = run("lint-seam", "src")
        assert ran.code == 0 and "warning: src/b/c.py: can't be read: Permission denied" in ran.out


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("<<<<<<< ours\n", "is no baseline: Invalid JSON"),
        ('{"tables": ["t"], "allow": []', "is no baseline: Invalid JSON"),
        ('{"tables": ["t"], "allow": [], "files": {"a": "1"}}', "is no baseline: files.a: "),
        ('{"tables": ["t"], "allow": [], "files": {"a": 0}}', "is no baseline: files.a: a count is 1 or more"),
        ('{"tables": ["a.b.c"], "allow": []}', "'a.b.c' is not a table's name"),
    ],
)
def test_a_baseline_that_is_none_is_refused_and_kept(run: Run, place: Path, content: str, why: str) -> None:
    file = place / "lint-seam.json"
    file.write_text(content)
    for options in ([], ["--update", "--allow-increase"]):
        ran = run("lint-seam", "src", *options)
        assert ran.code == 2 and why in ran.err and "Next: " in ran.err
    assert file.read_text() == content


def test_usage(run: Run, place: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    assert run("lint-seam", "typo").code == 2
    assert "without --update" in run("lint-seam", "src", "--allow-increase").err
    assert "is not below" in run("lint-seam", "src", "--baseline", tmp_path_factory.mktemp("b") / "b.json").err
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "x.py").write_text(LEAK)
    assert run("lint-seam", elsewhere, "--update").code == 0
    assert (elsewhere / "lint-seam.json").exists() and not (place / "lint-seam.json").exists()
