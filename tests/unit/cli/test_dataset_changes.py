"""`lakeward dataset changes`, and `--since` of what reads rows."""

from __future__ import annotations

from pathlib import Path

import pytest

import lakeward
from support.commands import Run


@pytest.fixture(autouse=True)
def dataset(opened: lakeward.Workspace) -> lakeward.Dataset:
    """Three rows; then one is updated, one deleted, one added."""
    made = opened.create_dataset("a.b.c", {"id": "long", "note": "string"}, ["id"])
    made.write([{"id": number, "note": f"n{number}"} for number in (1, 2, 3)])
    given = [("update", 1, "new"), ("delete", 2, None), ("insert", 4, "n4")]
    made.write([{"__op": operation, "id": id_, "note": note} for operation, id_, note in given], mode="changes")
    return made


def test_it_shows_what_became_of_each_row(run: Run) -> None:
    ran = run("dataset", "changes", "a.b.c", "--since", "1")
    assert ran.code == 0
    assert "4 rows from version 1 to 2: 1 insert, 1 update, 1 before, 1 delete\n" in ran.out
    assert "new" in ran.out and "n2" in ran.out
    document = run("dataset", "changes", "a.b.c", "--since", "1", "--output", "json").document
    assert document["columns"] == ["__op", "id", "note"] and (document["since"], document["version"]) == (1, 2)
    told = [(row["__op"], row["id"], row["note"]) for row in document["rows"]]
    assert told == [("before", 1, "n1"), ("update", 1, "new"), ("delete", 2, "n2"), ("insert", 4, "n4")]
    assert not document["more"]


def test_it_shows_what_is_asked_for(run: Run) -> None:
    arguments = ["--since", "1", "--version", "2", "--no-before", "--select", "note", "--identity", "-n", "2"]
    ran = run("dataset", "changes", "a.b.c", *arguments, "--output", "json").document
    assert ran["columns"][:2] == ["__op", "note"] and ran["columns"][2] == "__row_index"
    assert len(ran["rows"]) == 2 and ran["more"]
    assert "there are more: --limit" in run("dataset", "changes", "a.b.c", *arguments).out
    assert (
        "3 rows from version 0 to 1: 3 insert"
        in run("dataset", "changes", "a.b.c", "--since", "0", "--version", "1").out
    )
    assert run("dataset", "changes", "a.b.c", "--since", "2").out == "0 rows from version 2 to 2: nothing changed\n"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--since", "9"], "later than version 2"),
        (["--since", "2", "--version", "1"], "later than version 1"),
        (["--since", "1", "--select", "nosuch"], "unknown column 'nosuch'"),
        ([], "--since"),
    ],
)
def test_it_refuses_what_can_not_be_meant(run: Run, arguments: list[str], says: str) -> None:
    ran = run("dataset", "changes", "a.b.c", *arguments)
    assert ran.code == 2 and says in ran.err


def test_a_dataset_without_versions_has_no_changes(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("a.b.new", {"id": "long"})
    assert run("dataset", "changes", "a.b.new", "--since", "0").out == "0 rows from version 0 to 0: nothing changed\n"


def test_rows_since_a_version_are_previewed_and_exported(run: Run, tmp_path: Path) -> None:
    found = run("dataset", "preview", "a.b.c", "--since", "1", "--output", "json").document["rows"]
    assert [row["id"] for row in found] == [1, 4]
    assert "2 rows shown" in run("dataset", "preview", "a.b.c", "--since", "1").out
    target = tmp_path / "new.csv"
    assert run("dataset", "export", "a.b.c", str(target), "--since", "1").code == 0
    assert sorted(target.read_text().splitlines()) == ["1,new", "4,n4", "id,note"]


def test_the_history_leaves_out_writes_that_had_nothing_to_write(run: Run, dataset: lakeward.Dataset) -> None:
    dataset.write([{"id": 3, "note": "n3"}], mode="upsert")
    statuses = {}
    for option in ((), ("--all",)):
        document = run("dataset", "history", "a.b.c", *option, "--output", "json").document
        statuses[option] = [each["status"] for each in document["transactions"]]
    assert statuses == {(): ["committed"] * 2, ("--all",): ["aborted", "committed", "committed"]}
    assert [each.status for each in dataset.history()] == statuses["--all",]
    assert [each.status for each in dataset.history(1, idle=False)] == ["committed"]
