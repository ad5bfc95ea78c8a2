"""`lakeward dataset lineage`: the tree of a dataset's columns, as a command."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from support.commands import Run

HEADER = "-- pipeline: {0}\n-- sources: {{s: a.b.{1}}}\n-- output: a.b.{0}\n-- strategy: replace\n"


@pytest.fixture
def applied(run: Run, opened: lakeward.Workspace, place: Path) -> None:
    opened.create_dataset("a.b.raw", {"id": "long", "t": "string"}).write([{"id": 1, "t": "x"}])
    (place / "pipelines").mkdir()
    (place / "lakeward.toml").touch()
    one = HEADER.format("one", "raw") + "select id, id * 2 as twice, t from s\n"
    (place / "pipelines" / "one.sql").write_text(one)
    two = HEADER.format("two", "one") + "select id + twice as x, t, 1 as c from s\n"
    (place / "pipelines" / "two.sql").write_text(two)
    assert run("apply").code == 0


@pytest.mark.usefixtures("applied")
def test_up_and_down(run: Run) -> None:
    assert run("dataset", "lineage", "a.b.two").out.splitlines() == [
        "a.b.two",
        "├── x, by pipeline two",
        "│   ├── a.b.one.id, by pipeline one",
        "│   │   └── a.b.raw.id",
        "│   └── a.b.one.twice, by pipeline one",
        "│       └── a.b.raw.id",
        "├── t, by pipeline two",
        "│   └── a.b.one.t, by pipeline one",
        "│       └── a.b.raw.t",
        "└── c, by pipeline two (from no column)",
    ]
    down = run("dataset", "lineage", "a.b.raw", "--down", "--column", "id").out.splitlines()
    assert down == [
        "a.b.raw",
        "└── id",
        "    ├── a.b.one.id, by pipeline one",
        "    │   └── a.b.two.x, by pipeline two",
        "    └── a.b.one.twice, by pipeline one",
        "        └── a.b.two.x, by pipeline two",
    ]
    raw = run("dataset", "lineage", "a.b.raw").out
    assert "no applied pipeline writes it" in raw and "Next: lakeward dataset lineage a.b.raw --down" in raw


@pytest.mark.usefixtures("applied")
def test_as_json_and_what_is_unknown(run: Run) -> None:
    document = run("dataset", "lineage", "a.b.two", "--column", "x", "--output", "json").document
    assert (document["dataset"], document["direction"]) == ("a.b.two", "up")
    (x,) = document["columns"]
    assert [(each["dataset"], each["column"], each["pipeline"]) for each in x["links"]] == [
        ("a.b.one", "id", "one"),
        ("a.b.one", "twice", "one"),
    ]
    column = run("dataset", "lineage", "a.b.two", "--column", "tt")
    assert column.code == 2 and "has no column 'tt'" in column.err and "did you mean t?" in column.err
    dataset = run("dataset", "lineage", "a.b.tow")
    assert dataset.code == 2 and "a.b.tow" in dataset.err
