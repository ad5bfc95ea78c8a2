"""`lakeward run`: one query into a dataset, as a command."""

from __future__ import annotations

import io
import re
import shlex
from pathlib import Path

import pytest

import lakeward
from support.commands import Run


@pytest.fixture
def orders(opened: lakeward.Workspace) -> lakeward.Workspace:
    opened.create_dataset("a.b.orders", {"id": "long", "t": "string"}, ["id"]).write(
        [{"id": number, "t": "x" * number} for number in range(4)]
    )
    return opened


def test_a_new_dataset_from_full_names_and_short_ones(run: Run, orders: lakeward.Workspace) -> None:
    made = run("run", "select * from a.b.orders where id > 1", "--into", "a.b.big", "--key", "id", "--arm", "iceberg")
    assert made.code == 0, made.err
    assert "a.b.big" in made.out and "Next: lakeward dataset preview a.b.big" in made.out
    again = run(
        "run", "select * from o", "--source", "o=a.b.orders", "--into", "a.b.big", "--strategy", "append_new",
        "--output", "json",
    )  # fmt: skip
    (done,) = again.document["transactions"]
    assert (done["rows_added"], done["rows_skipped"], done["row_count"]) == (2, 2, 4)
    assert again.document["pipeline"] is None
    assert orders.dataset("a.b.big").arm == "iceberg"


def test_a_dry_run_changes_nothing(run: Run, orders: lakeward.Workspace) -> None:
    ran = run("run", "select id from a.b.orders", "--into", "a.b.ids", "--dry-run")
    assert ran.out.splitlines()[:2] == [
        "1. create dataset a.b.ids (id long) on the postgres arm",
        "2. replace a.b.ids from a.b.orders at version 1",
    ]
    assert orders.tree.find("a.b.ids") is None


def test_a_split_and_an_empty_side(run: Run, orders: lakeward.Workspace) -> None:
    split = ("run", "select * from a.b.orders", "--into", "a.b.all", "--where", "id >= 0", "--rest", "a.b.none")
    refused = run(*split)
    assert refused.code == 1 and "zero rows" in refused.err
    assert run(*split, "--allow-empty").code == 0
    assert (orders.dataset("a.b.all").row_count, orders.dataset("a.b.none").row_count) == (4, 0)


def test_the_query_from_standard_input(run: Run, orders: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("select count(*) as n from a.b.orders"))
    assert run("run", "-", "--into", "a.b.n").code == 0
    assert orders.dataset("a.b.n").to_arrow().to_pylist() == [{"n": 4}]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["select nope from a.b.orders"], "(line 1, column 8)"),
        (["select id from orders"], "--source NAME=DATASET"),
        (["select id from o", "--source", "o"], "names no dataset"),
        (["select id from o", "--source", "o=a.b.orders", "--source", "o=a.b.orders"], "twice"),
        (["select id from a.b.orders", "--strategy", "apend_new"], "append_new"),
    ],
)
def test_what_is_wrong_is_2_and_told(run: Run, orders: lakeward.Workspace, arguments: list[str], says: str) -> None:
    ran = run("run", *arguments, "--into", "a.b.x")
    assert ran.code == 2
    assert says in ran.err
    assert orders.tree.find("a.b.x") is None


def test_the_example_of_the_page_runs_as_it_is_written(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("shop.raw.orders", {"customer_id": "long", "amount": "decimal(18,4)"}).write(
        [{"customer_id": number % 2, "amount": number} for number in range(4)]
    )
    page = (Path(__file__).resolve().parents[3] / "docs" / "pipelines.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^```sh\n(lakeward run .*?)^```", page, re.MULTILINE | re.DOTALL)
    assert run(*shlex.split(command.replace("\\\n", " "))[1:]).code == 0
    assert opened.dataset("shop.tmp.spent").row_count == 2
