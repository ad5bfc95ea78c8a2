"""Files into datasets by key: what becomes of each row is said, and what can't be done changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.commands import Run


@pytest.fixture(params=["postgres", "iceberg"])
def orders(request: pytest.FixtureRequest, run: Run, place: Path) -> str:
    """The name of a dataset on each arm, which has the keys 1, 2 and 3."""
    (place / "first.csv").write_text("id,note\n1,a\n2,b\n3,c\n")
    assert run("dataset", "import", "a.b.c", "first.csv", "--key", "id", "--arm", request.param).code == 0
    return "a.b.c"


def notes(run: Run, dataset: str) -> dict[int, str]:
    return {row["id"]: row["note"] for row in run("dataset", "preview", dataset, "--output", "json").document["rows"]}


def test_upsert_says_what_became_of_each_row(run: Run, place: Path, orders: str) -> None:
    (place / "more.csv").write_text("note,id\nB,2\nc,3\nd,4\n")
    ran = run("dataset", "import", orders, "more.csv", "--mode", "upsert")
    assert (ran.code, ran.err) == (0, "")
    assert "3 rows read = 1 added, 1 updated, 1 unchanged, in " in ran.out
    assert notes(run, orders) == {1: "a", 2: "B", 3: "c", 4: "d"}
    again = run("dataset", "import", orders, "more.csv", "--mode", "upsert", "--output", "json").document
    assert (again["committed"], again["version"], again["rows_unchanged"]) == (False, 2, 3)


def test_the_other_modes(run: Run, place: Path, orders: str) -> None:
    (place / "new.csv").write_text("id,note\n3,x\n4,d\n")
    done = run("dataset", "import", orders, "new.csv", "--mode", "append_new", "--output", "json").document
    assert (done["rows_added"], done["rows_skipped"]) == (1, 1)
    (place / "gone.csv").write_text("id\n1\n9\n")
    done = run("dataset", "import", orders, "gone.csv", "--mode", "delete", "--output", "json").document
    assert (done["rows_written"], done["rows_deleted"], done["rows_skipped"], done["row_count"]) == (2, 1, 1, 3)
    (place / "log.csv").write_text("__op,id,note\ndelete,2,\nupdate,3,C\ninsert,5,e\n")
    done = run("dataset", "import", orders, "log.csv", "--mode", "changes", "--output", "json").document
    assert (done["rows_deleted"], done["rows_updated"], done["rows_added"]) == (1, 1, 1)
    assert notes(run, orders) == {3: "C", 4: "d", 5: "e"}
    (place / "all.csv").write_text("id,note\n5,e\n6,f\n")
    planned = run("dataset", "import", orders, "all.csv", "--mode", "mirror", "--dry-run")
    assert "delete those of its 3 rows that the file does not have" in planned.out
    done = run("dataset", "import", orders, "all.csv", "--mode", "mirror", "--output", "json").document
    assert (done["rows_deleted"], done["rows_unchanged"], done["rows_added"]) == (2, 1, 1)
    assert notes(run, orders) == {5: "e", 6: "f"}


def test_what_is_refused_changes_nothing(run: Run, place: Path, orders: str) -> None:
    (place / "twice.csv").write_text("id,note\n7,a\n8,b\n7,a\n")
    ran = run("dataset", "import", orders, "twice.csv", "--mode", "upsert", "--output", "json")
    assert (ran.code, ran.document["error"]) == (1, "DuplicateKey")
    assert ran.document["fields"]["keys"] == [{"id": "7"}]
    (place / "empty.csv").write_text("id,note\n")
    ran = run("dataset", "import", orders, "empty.csv", "--mode", "mirror", "--output", "json")
    assert (ran.code, ran.document["error"]) == (1, "EmptyReplace")
    (place / "op.csv").write_text("__op,id,note\nremove,1,\n")
    ran = run("dataset", "import", orders, "op.csv", "--mode", "changes")
    assert ran.code == 1 and "row 1, column '__op': value 'remove' is none of insert, update, delete" in ran.err
    assert notes(run, orders) == {1: "a", 2: "b", 3: "c"}


def test_a_new_dataset_needs_a_key_and_takes_no_deletions(run: Run, place: Path) -> None:
    (place / "log.csv").write_text("__op,id,note\ninsert,1,a\n")
    ran = run("dataset", "import", "a.b.new", "log.csv", "--mode", "changes")
    assert ran.code == 2 and "the new dataset a.b.new has none" in ran.err
    done = run("dataset", "import", "a.b.new", "log.csv", "--mode", "changes", "--key", "id", "--output", "json")
    assert (done.document["created"], done.document["rows_added"]) == (True, 1)
    shown = run("dataset", "list", "--output", "json").document["datasets"]
    assert list(shown[0]["columns"]) == ["id", "note"]
    assert run("dataset", "import", "a.b.other", "log.csv", "--mode", "delete").code == 2
