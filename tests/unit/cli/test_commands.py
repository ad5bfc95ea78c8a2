"""The commands on datasets and the ledger: what they print, what repeating does, and what a dry run leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sqlalchemy

import lakeward
from support.commands import Run

TABLES = "select table_name from information_schema.tables where table_schema = 'lakeward' order by 1"


def everything(workspace: lakeward.Workspace) -> dict[str, int]:
    """Return the number of rows of every table, and of every file of the warehouse."""
    names = [row["table_name"] for row in workspace.database.fetch(sqlalchemy.text(TABLES))]
    counts = {
        name: workspace.database.fetch(
            sqlalchemy.select(sqlalchemy.func.count().label("n")).select_from(  # type: ignore[arg-type]
                sqlalchemy.table(name, schema="lakeward")
            )
        )[0]["n"]
        for name in names
    }
    home = workspace.settings.values.home
    assert home is not None
    return counts | {"files": sum(1 for path in home.rglob("*") if path.is_file())}


def test_create_is_repeatable_and_refuses_another(run: Run) -> None:
    made = run(
        "dataset", "create", "a.b.c", "--columns", "id:long,t:string", "--key", "id", "--output", "json"
    ).document
    assert (made["created"], made["arm"]) == (True, "postgres") and made["next_steps"]
    again = run("dataset", "create", "a.b.c", "--columns", "id:long,t:string", "--key", "id")
    assert again.code == 0 and "exists already, as declared; nothing to do" in again.out
    for other, says in (
        (["--columns", "id:int,t:string", "--key", "id"], "column 'id' is long there, and int was declared"),
        (["--columns", "id:long,t:string"], "its primary key is (id), and none was declared"),
        (["--columns", "t:string,id:long", "--key", "id"], "its columns are in another order"),
        (["--columns", "id:long,t:string", "--key", "id", "--arm", "iceberg"], "it is on the postgres arm"),
    ):
        ran = run("dataset", "create", "a.b.c", *other)
        assert (ran.code, ran.out) == (2, "") and says in ran.err and "Safe: the dataset is unchanged" in ran.err


def test_partitions_are_declared_shown_and_compared(run: Run) -> None:
    columns = ["--columns", "id:long,ts:timestamp", "--arm", "iceberg"]
    declared = ["--partition-by", "Bucket(16,id)", "--partition-by", "day(ts)"]
    dry = run("dataset", "create", "a.b.c", *columns, *declared, "--dry-run")
    assert "partitioned by bucket(16, id), day(ts)" in dry.out
    assert run("dataset", "create", "a.b.c", *columns, *declared).code == 0
    again = run("dataset", "create", "a.b.c", *columns, *declared)
    assert again.code == 0 and "nothing to do" in again.out
    other = run("dataset", "create", "a.b.c", *columns, "--partition-by", "month(ts)")
    assert other.code == 2 and "it is partitioned by bucket(16, id), day(ts), and partitioned by month(ts)" in other.err
    shown = run("dataset", "show", "a.b.c", "--output", "json").document
    assert shown["partition_by"] == ["bucket(16, id)", "day(ts)"]
    assert "bucket(16, id), day(ts)" in run("dataset", "show", "a.b.c").out
    bad = run("dataset", "create", "a.b.d", *columns, "--partition-by", "day(id)")
    assert bad.code == 2 and "column 'id' is a long, which day does not take" in bad.err


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (["dataset", "create", "x.y.z", "--columns", "id:long"], "create dataset x.y.z on the postgres arm (id long)"),
        (["dataset", "import", "x.y.z", "t.csv", "--arm", "iceberg"], "append 2 rows of t.csv to x.y.z on the iceberg"),
        (["dataset", "import", "a.b.c", "t.csv", "--mode", "replace"], "instead of its 1 rows"),
        (["dataset", "export", "a.b.c", "out.csv"], "write version 1 of a.b.c to out.csv"),
        (["dataset", "copy", "a.b.c", "--to", "iceberg"], "copy 1 row of a.b.c version 1 to the iceberg arm"),
        (["apply"], "store pipeline one (new)"),
        (["ledger", "recover"], "nothing to do"),
        (["init", "new"], "write new/lakeward.toml"),
        (["demo"], "flip nyc.analytics.flights_enriched to the iceberg arm"),
    ],
)
def test_a_dry_run_changes_nothing(
    run: Run, opened: lakeward.Workspace, place: Path, command: list[str], says: str
) -> None:
    opened.create_dataset("a.b.c", {"id": "long"}).write([{"id": 1}])
    (place / "t.csv").write_text("id\n1\n2\n")
    (place / "lakeward.toml").write_text("")
    (place / "pipelines").mkdir()
    (place / "pipelines" / "one.sql").write_text(
        "-- pipeline: one\n-- sources: {s: a.b.c}\n-- output: a.b.d\n-- strategy: replace\nselect id from s\n"
    )
    before, files = everything(opened), sorted(place.rglob("*"))
    ran = run(*command, "--dry-run")
    assert (ran.code, ran.err) == (0, "") and says in ran.out
    document = run(*command, "--dry-run", "--output", "json").document
    assert document["dry_run"] is True and document["actions"] == [
        line.partition(". ")[2] for line in ran.out.splitlines() if line[0].isdigit()
    ]
    assert everything(opened) == before and sorted(place.rglob("*")) == files


def test_a_dry_run_where_there_is_no_workspace_makes_none(
    run: Run, place: Path, monkeypatch: pytest.MonkeyPatch, short_tmp: Path
) -> None:
    monkeypatch.delenv("LAKEWARD_DATABASE_URL")
    monkeypatch.setenv("TMPDIR", str(short_tmp))
    monkeypatch.setattr("tempfile.tempdir", None)
    ran = run("dataset", "create", "a.b.c", "--columns", "id:long", "--dry-run", "--home", place / "home")
    assert ran.code == 0, ran.err
    assert f"1. make the workspace in {place / 'home'}\n2. create dataset a.b.c" in ran.out
    assert not (place / "home").exists() and not list(short_tmp.iterdir())


def test_copy_verify_show_history(run: Run, opened: lakeward.Workspace) -> None:
    orders = opened.create_dataset("a.b.c", {"id": "long", "t": "string"}, ["id"])
    assert "has no rows yet" in run("verify", "a.b.c").out
    assert run("dataset", "copy", "a.b.c", "--to", "iceberg").code == 2
    orders.write([{"id": 1, "t": "x"}, {"id": 2, "t": None}])
    assert "on one arm only" in run("verify", "a.b.c").out
    copied = run("dataset", "copy", "a.b.c", "--to", "iceberg", "--output", "json").document
    assert (copied["rows_in"], copied["committed"], copied["version"]) == (2, True, 2)
    again = run("dataset", "copy", "a.b.c", "--to", "iceberg")
    assert again.code == 0 and "holds version 2 already; nothing to do" in again.out
    assert run("dataset", "copy", "a.b.c", "--to", "duck").code == 2
    verified = run("verify", "a.b.c", "--output", "json")
    assert verified.code == 0 and verified.document["equal"] is True
    shown = run("dataset", "show", "a.b.c", "--output", "json").document
    assert shown["digest"] == str(orders.digest()) and set(shown["places"]) == {"postgres", "iceberg"}
    assert (shown["mode"], shown["primary_key"], shown["row_count"]) == ("pg", ["id"], 2)
    history = run("dataset", "history", "a.b.c", "--output", "json").document["transactions"]
    assert [(each["version"], each["verb"]) for each in history] == [(2, "copy"), (1, "append")]
    assert "a.b.c" in run("ledger", "list").out and "append" in run("dataset", "history", "a.b.c").out
    status = run("status", "--output", "json").document["datasets"]
    assert status[0]["holders"] == ["postgres", "iceberg"] and status[0]["status"] == "ok"


def test_arms_that_differ_are_4(run: Run, opened: lakeward.Workspace) -> None:
    orders = opened.create_dataset("a.b.c", {"id": "long", "t": "string"})
    orders.write([{"id": 1, "t": "x"}])
    orders.copy_to("iceberg")
    harm = "update lakeward.dataset_rows set data = jsonb_set(data, '{t}', '\"y\"')"
    opened.database.fetch(sqlalchemy.text(harm))
    text = run("verify", "a.b.c")
    assert (text.code, text.out) == (4, "")
    assert "version 2: the postgres and the iceberg arm differ in 1 row" in text.err and "__row_id=0: t" in text.err
    inside = run("verify", "a.b.c", "--output", "json")
    assert (inside.code, inside.err) == (4, "")
    assert inside.document["error"] == "ParityMismatch" and set(inside.document["fields"]["digests"]) == {
        "postgres",
        "iceberg",
    }


def test_preview(run: Run, opened: lakeward.Workspace) -> None:
    data = opened.create_dataset("a.b.c", {"id": "long", "t": "string", "b": "binary"})
    data.write([{"id": number, "t": "y" * 99, "b": b"\0" * 50} for number in range(30)])
    data.write([{"id": 2**53 + 1, "t": None, "b": None}], mode="replace")
    old = run("dataset", "preview", "a.b.c", "--version", "1")
    assert old.out.count("00…") == 10 and "y" * 40 not in old.out and "10 rows shown" in old.out
    assert (
        len(run("dataset", "preview", "a.b.c", "--version", "1", "-n", "25", "--output", "json").document["rows"]) == 25
    )
    now = run("dataset", "preview", "a.b.c", "--identity", "--output", "json").document
    assert now["rows"][0]["id"] == 2**53 + 1 and now["rows"][0]["__version"] == 2 and now["rows"][0]["b"] is None
    assert "1 of 1 row\n" in run("dataset", "preview", "a.b.c").out
    some = run("dataset", "preview", "a.b.c", "--version", "1", "--where", "id % 10 = 0", "--output", "json").document
    assert [row["id"] for row in some["rows"]] == [0, 10, 20]
    assert run("dataset", "preview", "a.b.c", "-n", "0").code == 0
    for where in ("1) or (1=1", "nope = 1", "id = (select 1)"):
        ran = run("dataset", "preview", "a.b.c", "--where", where)
        assert (ran.code, ran.out) == (2, "") and "filter" in ran.err
    for where, says in (("id >", "a part of it is missing"), ("t = 'x", "a quotation"), ("id t b", "Expecting )")):
        ran = run("dataset", "preview", "a.b.c", "--where", where)
        assert ran.code == 2 and f"is not a SQL predicate: {says}" in ran.err
        assert "class" not in ran.err and "sqlglot" not in ran.err and "Line" not in ran.err
    missing = run("dataset", "preview", "a.b.c", "--version", "9")
    assert missing.code == 2 and "no committed version 9" in missing.err


def test_names_with_markup_and_commands_are_only_text(run: Run) -> None:
    name = 'a."b.[red]".c'
    made = run("dataset", "create", name, "--column", 'q"x=long', "--column", "[bold]=string")
    assert made.code == 0, made.err
    for command in (["status"], ["dataset", "list"], ["dataset", "show", name]):
        assert "[red]" in run(*command).out
    assert "[bold]" in run("dataset", "preview", name).out


def test_recover_says_what_it_did(run: Run, opened: lakeward.Workspace) -> None:
    assert run("ledger", "recover").out == "nothing to recover\n"
    assert run("ledger", "recover", "--output", "json").document == {"recovered": [], "next_steps": []}
    wrong = run("ledger", "list", "--status", "gone")
    assert wrong.code == 2 and "'gone'" in wrong.err


@pytest.mark.parametrize(
    "command", [["status"], ["dataset", "list"], ["ledger", "list"], ["doctor"], ["ledger", "recover"]]
)
def test_json_is_one_document_and_nothing_else(run: Run, command: list[str]) -> None:
    ran = run(*command, "--output", "json", "-v")
    assert ran.code == 0 and isinstance(json.loads(ran.out)["next_steps"], list)
