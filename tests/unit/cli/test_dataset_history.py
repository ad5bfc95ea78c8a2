"""`dataset history` offers what can be read, and `flip complete` says what can't any more."""

from __future__ import annotations

from pathlib import Path

import lakeward
from support.commands import Run

NAME = "a.b.orders"


def test_a_version_that_is_gone_is_told_and_never_offered(run: Run, place: Path, opened: lakeward.Workspace) -> None:
    dataset = opened.create_dataset(NAME, {"id": "long"})
    for number in range(4):
        dataset.write([{"id": number}])
    assert "Next: lakeward dataset preview a.b.orders --version 1" in run("dataset", "history", NAME).out
    (place / "lakeward.toml").write_text("[retention]\nversions = 2\n")
    with lakeward.open(settings_file=place / "lakeward.toml") as fewer:
        fewer.maintain(NAME)
    shown = run("dataset", "history", NAME)
    assert "Next: lakeward dataset preview a.b.orders --version 3" in shown.out
    assert shown.out.count("not readable") == 2
    assert run("dataset", "preview", NAME, "--version", "3").code == 0
    assert run("dataset", "preview", NAME, "--version", "2").code == 2
    found = run("dataset", "history", NAME, "--output", "json").document["transactions"]
    assert [(each["version"], each["readable"], each["status"]) for each in found] == [
        (4, True, "committed"),
        (3, True, "committed"),
        (2, False, "committed"),
        (1, False, "committed"),
    ]


def test_a_flip_says_what_nobody_can_read_any_more(run: Run, opened: lakeward.Workspace) -> None:
    dataset = opened.create_dataset(NAME, {"id": "long"})
    for number in range(2):
        dataset.write([{"id": number}])
    opened.flip(NAME).run(to="iceberg")
    dataset.write([{"id": 5}])
    planned = run("flip", "complete", NAME, "--dry-run")
    assert "lose version 1: only Postgres has it, and nobody can read it any more" in planned.out
    wrong = run("flip", "complete", NAME, "--confirm", "a.b.order")
    assert wrong.code == 2 and "--confirm 'a.b.order' is not a.b.orders" in wrong.err
    assert "nothing was changed" in wrong.err and opened.dataset(NAME).status().mode == "iceberg_dual"
    done = run("flip", "complete", NAME, "--confirm", NAME)
    assert done.code == 0 and "not readable any more: version 1" in done.out
    shown = run("dataset", "history", NAME)
    assert shown.out.count("not readable") == 1 and "--version 2" in shown.out
    assert run("dataset", "preview", NAME, "--version", "1").code == 2
