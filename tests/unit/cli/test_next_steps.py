"""Next steps can be pasted: a shell splits them into the words that were meant, and they name the same workspace."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from lakeward.cli.next_steps import given_home, lakeward, with_home
from support.commands import Run


def test_words_survive_a_shell() -> None:
    words = ["dataset", "preview", 'a."b c".it\'s', "--version", 1]
    assert shlex.split(lakeward(*words)) == ["lakeward", *map(str, words)]


@pytest.mark.parametrize(
    ("step", "wanted"),
    [
        ("lakeward apply", "lakeward apply --home 'my home'"),
        ("lakeward dataset preview a.b.c", "lakeward dataset preview --home 'my home' a.b.c"),
        (
            "`lakeward dataset show x` says it, `lakeward status` too",
            "`lakeward dataset show --home 'my home' x` says it, `lakeward status --home 'my home'` too",
        ),
        (
            "did you mean x? If it is new: lakeward apply",
            "did you mean x? If it is new: lakeward apply --home 'my home'",
        ),
        ("lakeward status --home other", "lakeward status --home other"),
        ("lakeward init DIR", "lakeward init DIR"),
        ("lakeward build --help", "lakeward build --home 'my home' --help"),
        ("pip install 'lakeward[demo]'", "pip install 'lakeward[demo]'"),
    ],
)
def test_the_home_that_was_given_is_named_again(step: str, wanted: str) -> None:
    assert with_home([step], Path("my home")) == [wanted]
    assert with_home([step], None) == [step]


def test_a_relative_home_is_absolute_after_cd() -> None:
    assert with_home(["cd x", "lakeward apply"], Path("h")) == ["cd x", f"lakeward apply --home {Path.cwd() / 'h'}"]


def test_home_is_found_in_arguments() -> None:
    assert given_home(["plan", "--home", "a b"]) == given_home(["plan", "--home=a b"]) == Path("a b")
    assert given_home(["plan", "--home"]) is None and given_home(["plan", "--", "--home", "x"]) is None


def test_steps_of_commands_lead_to_the_same_workspace(run: Run, place: Path) -> None:
    home = place / "my home"
    made = run("dataset", "create", 'a."b c".d', "--columns", "id:long", "--home", home, "--output", "json").document
    assert shlex.split(made["next_steps"][0]) == [
        *("lakeward", "dataset", "import", "--home", str(home), "a.b c.d", "FILE"),
    ]
    assert f"\nNext: lakeward apply --home '{home}'\n" in run("build", "--home", home).err


def test_init_here_needs_no_cd(run: Run) -> None:
    steps = run("init", ".", "--output", "json").document["next_steps"]
    assert steps and not any(step.startswith("cd ") for step in steps)
    assert run("init", "a b", "--output", "json").document["next_steps"][0] == "cd 'a b'"


def test_a_project_that_was_named_is_named_again(run: Run, place: Path) -> None:
    run("init", "a b")
    run("dataset", "import", "shop.raw.orders", place / "a b" / "data" / "orders.csv", "--key", "order_id")
    planned = run("plan", "--project", "a b", "--output", "json").document
    assert planned["next_steps"] == ["lakeward apply --project 'a b'"]
