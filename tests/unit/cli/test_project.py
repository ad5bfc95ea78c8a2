"""`init`, `plan`, `apply` and `build`: the example works as it says, and a wrong project is shown where it is wrong."""

from __future__ import annotations

import re
import shlex
import signal
from pathlib import Path

import pytest

import lakeward
from lakeward.cli.commands.init import NEXT_STEPS
from lakeward.cli.packaged_files import packaged_files
from support.commands import Run, process

HEADER = "-- pipeline: one\n-- sources: {s: a.b.c}\n-- output: a.b.d\n-- strategy: replace\n"


@pytest.fixture
def project(opened: lakeward.Workspace, place: Path) -> Path:
    """A project folder around the current one, and its source dataset."""
    opened.create_dataset("a.b.c", {"id": "long", "t": "string"}).write([{"id": 1, "t": "x"}, {"id": 2, "t": "0"}])
    opened.create_dataset("a.b.secret", {"id": "long"}).write([{"id": 1}])
    (place / "lakeward.toml").write_text("")
    (place / "pipelines").mkdir()
    return place / "pipelines"


def test_init_makes_a_project_whose_own_lines_work(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = run("init", "shop", "--output", "json").document
    assert made["next_steps"] == ["cd shop", *NEXT_STEPS]
    again = run("init", "shop")
    assert again.code == 0 and "nothing to do" in again.out
    monkeypatch.chdir(place / "shop")
    # Where the workspace is, its own file says; the database is the tests' one.
    monkeypatch.delenv("LAKEWARD_HOME")
    blocks = re.findall(r"```sh\n(.*?)```", (place / "shop" / "README.md").read_text(), re.DOTALL)
    lines = [shlex.split(line, comments=True) for block in blocks for line in block.splitlines()]
    codes = {" ".join(line[1:]): run(*line[1:]).code for line in lines if line}
    assert codes.pop("plan") == 3
    assert set(codes.values()) == {0}, codes
    assert {shlex.join(shlex.split(step)[1:]) for step in NEXT_STEPS} <= set(codes)
    preview = run("dataset", "preview", "shop.analytics.revenue_by_country", "--output", "json").document["rows"]
    assert {row["country"]: row["revenue"] for row in preview} == {"DE": "226.75", "FR": "94.50", "US": "398.80"}
    assert (place / "shop" / ".lakeward").is_dir()


def test_init_overwrites_nothing(run: Run, place: Path) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "README.md").write_text("my own")
    (place / "mine" / "data").write_text("")
    ran = run("init", "mine")
    assert ran.code == 2 and "README.md is there already, and is another file" in ran.err
    assert sorted(path.name for path in (place / "mine").iterdir()) == ["README.md", "data"]
    (place / "mine" / "README.md").unlink()
    assert run("init", "mine").code == 2 and [path.name for path in (place / "mine").iterdir()] == ["data"]
    (place / "file").write_text("")
    (place / "dangling").mkdir()
    (place / "dangling" / "lakeward.toml").symlink_to(place / "elsewhere.toml")
    for name in ("file/below", "dangling", "", "  ", "x" * 300):
        ran = run("init", name, "--output", "json")
        assert ran.code == 2 and ran.document["error"] == "UsageError" and ran.document["next_steps"], name
    assert sorted(path.name for path in place.iterdir()) == ["dangling", "file", "mine"]


def test_the_packaged_projects_are_whole() -> None:
    assert {"lakeward.toml", ".gitignore", "README.md", "data/orders.csv"} <= set(packaged_files("example_project"))
    assert len([path for path in packaged_files("demo_project") if path.startswith("pipelines/")]) == 4


def test_plan_apply_build_and_again(run: Run, project: Path) -> None:
    (project / "one.sql").write_text(f"{HEADER}select id, t from s\n")
    for _ in range(2):
        plan = run("plan", "--output", "json")
        assert plan.code == 3 and plan.document["pending"] is True and plan.document["next_steps"] == ["lakeward apply"]
    assert "store pipeline one (new)" in run("apply", "--dry-run").out
    assert run("apply").code == 0
    assert run("apply").out == "nothing to apply: the project is as it was applied\n"
    assert run("plan").code == 0
    assert "replace a.b.d from a.b.c (pipeline one): a.b.d was never written" in run("build", "--dry-run").out
    built = run("build", "one", "--output", "json").document
    assert built["builds"][0]["pipeline"] == "one" and built["builds"][0]["transactions"][0]["row_count"] == 2
    again = run("build")
    assert (again.code, again.out) == (0, "pipeline one: up to date\n")
    again = run("build", "--output", "json")
    assert again.code == 0
    assert again.document["builds"] == [
        {"build_id": None, "pipeline": "one", "up_to_date": True, "transactions": [], "warnings": []},
    ]
    assert run("build", "--dry-run").out == "nothing to do\n"
    assert "asked for in full" in run("build", "one", "--full", "--dry-run").out
    assert run("dataset", "show", "a.b.d", "--output", "json").document["version"] == 1
    full = run("build", "--full", "--output", "json").document["builds"][0]
    assert full["up_to_date"] is False and full["transactions"][0]["version"] == 2
    unknown = run("build", "two")
    assert unknown.code == 2 and "pipeline 'two' is not applied" in unknown.err
    (project / "one.sql").unlink()
    removed = run("plan")
    assert removed.code == 3 and "a.b.d: leave, replace on postgres (the dataset stays as it is)" in removed.out
    assert "remove pipeline one" in run("apply", "--dry-run").out
    applied = run("apply")
    assert "\napplied: 1 removed\n" in applied.out and "Next:" not in applied.out


def test_build_warns_where_files_differ_from_what_is_applied(run: Run, project: Path) -> None:
    (project / "one.sql").write_text(f"{HEADER}select id, t from s\n")
    assert run("apply").code == 0
    assert "warning" not in run("build").out
    (project / "one.sql").write_text(f"{HEADER}select id, t from s where id > 1\n")
    ran = run("build")
    assert ran.code == 0
    assert "\nwarning: 1 pipeline on disk differs from what is applied\nNext: lakeward plan\n" in ran.out
    (project / "two.sql").write_text(HEADER.replace("one", "two").replace("a.b.d", "a.b.e") + "select id from s\n")
    inside = run("build", "--full", "--output", "json").document
    assert inside["warnings"] == ["2 pipelines on disk differ from what is applied"]
    assert inside["next_steps"] == ["lakeward plan", "lakeward dataset preview a.b.d"]
    assert "Next: lakeward plan" in run("build", "--dry-run").out


def test_a_project_that_cannot_be_read_does_not_stop_build(run: Run, project: Path) -> None:
    (project / "one.sql").write_text(f"{HEADER}select id, t from s\n")
    assert run("apply").code == 0
    (project / "one.sql").write_text("select")
    ran = run("build")
    assert ran.code == 0 and "warning: the project on disk can't be read" in ran.out and "one.sql" in ran.out
    assert run("dataset", "show", "a.b.d", "--output", "json").document["row_count"] == 2


def test_no_project_and_nothing_applied(run: Run, opened: lakeward.Workspace) -> None:
    assert run("plan").code == 2
    ran = run("build")
    assert ran.code == 2 and "no pipeline is applied" in ran.err


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("select id,\n  t frm s s s\n", "one.sql:6"),
        ("select nope from s\n", "nope"),
        ("select * from read_csv('/etc/passwd')\n", "read_csv"),
        ("select * from '/etc/passwd'\n", "/etc/passwd"),
        ("copy (select 1) to 'out.csv'\n", "one.sql:5"),
        ("select * from read_parquet('http://127.0.0.1:1/x.parquet')\n", "read_parquet"),
        ("attach 'x.db'\n", "one.sql:5"),
        ("select * from a.b.secret\n", "secret"),
        ("select getenv('LAKEWARD_DATABASE_URL') from s\n", "getenv"),
    ],
)
def test_sql_that_is_wrong_or_reaches_out_is_shown_in_place(run: Run, project: Path, sql: str, says: str) -> None:
    (project / "one.sql").write_text(HEADER + sql)
    ran = run("plan")
    assert (ran.code, ran.out) == (2, "")
    assert "one.sql" in ran.err and says in ran.err
    assert any(line.strip().strip("|").strip() == "^" for line in ran.err.splitlines()), ran.err
    inside = run("apply", "--output", "json")
    assert (inside.code, inside.err) == (2, "") and inside.document["error"] == "SqlError"
    assert run("build").code == 2


def test_a_query_that_fails_while_it_runs_leaves_the_dataset(run: Run, project: Path) -> None:
    (project / "one.sql").write_text(f"{HEADER}select cast(t as integer) as t from s where id > 1\n")
    assert run("apply").code == 0 and run("build").code == 0
    (project / "one.sql").write_text(f"{HEADER}select cast(t as integer) as t from s\n")
    assert run("apply").code == 0
    ran = run("build")
    assert (ran.code, ran.out) == (1, "") and "a.b.d" in ran.err and "Safe: dataset a.b.d is unchanged" in ran.err
    shown = run("dataset", "show", "a.b.d", "--output", "json").document
    assert (shown["version"], shown["row_count"]) == (1, 1)


def test_explain_says_what_a_build_would_read_and_why(run: Run, place: Path) -> None:
    (place / "lakeward.toml").write_text("")
    (place / "pipelines").mkdir()
    (place / "pipelines" / "one.sql").write_text(
        "-- pipeline: one\n-- sources: {s: a.b.c}\n-- output: a.b.d\n-- strategy: append_always\nselect id from s\n"
    )
    (place / "t.csv").write_text("id\n1\n2\n")
    assert run("dataset", "import", "a.b.c", "t.csv").code == 0
    assert run("apply").code == 0
    first = run("build", "--explain")
    assert first.code == 0 and "all rows" in first.out and "the first build" in first.out
    assert run("build").code == 0
    assert run("dataset", "import", "a.b.c", "t.csv").code == 0
    [output] = run("build", "--explain", "--output", "json").document["outputs"]
    assert (output["delta"], output["strategy"]) == (True, "append_always")
    source = {"dataset": "a.b.c", "low": 1, "high": 2, "reason": "1 new version since the last build"}
    assert output["sources"] == {"s": source}
    assert "(1, 2]" in run("build", "--explain").out
    built = run("build", "--output", "json").document["builds"]
    assert built[0]["transactions"][0]["rows_in"] == 2


def test_a_selection_is_shown_in_order_and_built(run: Run, project: Path) -> None:
    (project / "one.sql").write_text(f"{HEADER}-- tags: [daily]\nselect id, t from s\n")
    two = HEADER.replace("one", "two").replace("a.b.c", "a.b.d").replace("output: a.b.d", "output: a.b.e")
    (project / "two.sql").write_text(f"{two}select id, t from s\n")
    run("apply")
    shown = run("build", "--select", "+two", "--dry-run", "--output", "json").document
    assert [action.partition(" from")[0] for action in shown["actions"]] == ["replace a.b.d", "replace a.b.e"]
    assert shown["next_steps"][-1] == "lakeward build --select +two"
    built = run("build", "--select", "tag:daily", "--output", "json").document
    assert [each["pipeline"] for each in built["builds"]] == ["one"]
    unknown = run("build", "--select", "+tow")
    assert unknown.code == 2 and "did you mean two?" in unknown.err


def test_a_watch_builds_what_changes_until_ctrl_c(run: Run, project: Path, opened: lakeward.Workspace) -> None:
    (project / "one.sql").write_text(f"{HEADER}select id, t from s\n")
    assert run("apply").code == 0
    child = process("build", "--watch", "--every", "0.2")
    assert child.stdout is not None
    assert child.stdout.readline() == "watching; Ctrl-C ends it\n"
    assert "a.b.d: replace, 2 written, 2 rows at version 1" in child.stdout.readline()
    opened.dataset("a.b.c").write([{"id": 3, "t": "y"}])
    assert "a.b.d: replace, 3 written, 3 rows at version 2" in child.stdout.readline()
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=30)
    assert (child.returncode, out, err) == (0, "stopped; a build that was under way changed nothing\n", "")
    assert run("build", "--watch", "--full").code == 2
    assert run("build", "--watch", "nope").code == 2
