"""The entry point: what is loaded, what errors look like, and how a command ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

import pytest
from typer.main import get_command

import lakeward
from lakeward.cli.app import EXIT_CODES, app
from lakeward.control.records import Intent
from lakeward.errors import LakewardError
from support.commands import Run, environment, process

HEAVY = ("duckdb", "pyarrow", "pyiceberg", "sqlalchemy", "psycopg")
SECRET = "hush-hush-7"


@pytest.mark.parametrize("arguments", [["--version"], ["--help"], ["dataset", "import", "--help"], ["demo", "--help"]])
def test_help_loads_no_engine(arguments: list[str]) -> None:
    code = f"""
import sys
from lakeward.cli.app import main
main({arguments!r})
print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=True)
    assert done.stderr.splitlines()[-1] == "[]"
    assert done.stdout


def test_version(run: Run) -> None:
    assert run("--version").out == f"lakeward {lakeward.__version__}\n"


def test_every_command_takes_the_common_options() -> None:
    def leaves(command: object, path: str = "") -> list[tuple[str, object]]:
        below = getattr(command, "commands", None)
        if below is None:
            return [(path, command)]
        return [leaf for name, each in below.items() for leaf in leaves(each, f"{path} {name}")]

    for path, command in leaves(get_command(app)):
        options = {option for parameter in command.params for option in parameter.opts}  # type: ignore[attr-defined]
        assert {"--home", "--output", "--verbose", "-v", "--quiet", "-q"} <= options, path


def test_every_error_has_a_documented_exit_code() -> None:
    def tree(kind: type[LakewardError]) -> set[int]:
        return {kind.exit_code}.union(*(tree(each) for each in kind.__subclasses__()))

    assert tree(LakewardError) <= set(EXIT_CODES)


@pytest.mark.parametrize(
    "arguments",
    [["datset"], ["status", "--bogus"], ["dataset", "import", "a.b.c"], ["dataset", "preview", "a.b.c", "-n", "many"]],
)
def test_usage_errors_are_2_in_text_and_json(run: Run, arguments: list[str]) -> None:
    text = run(*arguments)
    assert (text.code, text.out) == (2, "")
    assert text.err.startswith("Error: ") and "\nNext: lakeward" in text.err
    inside = run(*arguments, "--output", "json")
    assert (inside.code, inside.err) == (2, "")
    assert inside.document["error"] == "UsageError" and inside.document["exit_code"] == 2
    assert inside.document["next_steps"]


def test_a_group_alone_prints_its_help(run: Run) -> None:
    for arguments in ([], ["dataset"], ["ledger"]):
        ran = run(*arguments)
        assert ran.code == 2 and ran.err.startswith("Usage: lakeward") and "Error" not in ran.err


def test_an_unknown_dataset_is_named_with_what_is_near(run: Run) -> None:
    assert run("dataset", "create", "main.sales.orders", "--columns", "id:long").code == 0
    ran = run("dataset", "show", "main.sales.order")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "Error: unknown dataset main.sales.order\nNext: did you mean main.sales.orders?\n"
    document = run("dataset", "show", "main.sales.order", "--output=json").document
    assert document["error"] == "UnknownObject" and document["fields"] == {"dataset": "main.sales.order"}


def test_looking_makes_no_workspace(run: Run, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEWARD_DATABASE_URL")
    for arguments in (["status"], ["dataset", "list"], ["ledger", "list"], ["verify", "a.b.c"], ["plan"]):
        ran = run(*arguments, "--home", place / "typo")
        assert ran.code == 2 and "there is no workspace" in ran.err
    assert not (place / "typo").exists()


def test_no_workspace_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LAKEWARD_DATABASE_URL")
    monkeypatch.delenv("LAKEWARD_HOME")
    ran = run("dataset", "list")
    assert ran.code == 2 and "no workspace is named" in ran.err and "Next: pass --home DIR" in ran.err


def test_a_home_that_can_not_be_made(run: Run, place: Path) -> None:
    (place / "file").write_text("")
    ran = run("dataset", "create", "a.b.c", "--columns", "id:long", "--home", place / "file" / "home")
    assert ran.code == 1 and f"the workspace directory {place / 'file' / 'home'} can't be used" in ran.err
    assert "Safe: nothing was changed" in ran.err


def test_the_unexpected_is_short_and_its_traceback_holds_no_values(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(name: str) -> None:
        hidden = SECRET
        raise RuntimeError(f"broken: {os.environ['LAKEWARD_DATABASE_URL']}, {len(hidden)}")

    monkeypatch.setenv("LAKEWARD_DATABASE_URL", f"postgresql://me:{SECRET}@127.0.0.1:1/db")
    monkeypatch.setattr("lakeward.cli.session.importlib.import_module", fail)
    short = run("status")
    assert short.code == 1 and short.out == ""
    assert "unexpected RuntimeError: broken" in short.err and "-v" in short.err and "Traceback" not in short.err
    long = run("status", "-v")
    assert "Traceback" in long.err and "in fail" in long.err
    inside = run("status", "--output", "json")
    assert inside.document["error"] == "Unexpected" and inside.err == ""
    assert all(SECRET not in text for ran in (short, long, inside) for text in (ran.out, ran.err))


def test_a_dataset_that_another_writer_holds_is_6(
    run: Run, opened: lakeward.Workspace, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = opened.create_dataset("a.b.c", {"id": "long"})
    opened.ledger.try_open(Intent(dataset.record.id, "a.b.c", "write", "append", uuid.uuid4(), writer="another"))
    monkeypatch.setenv("LAKEWARD_LEDGER__LOCK_TIMEOUT_SECONDS", "0.3")
    (place / "one.csv").write_text("id\n1\n")
    ran = run("dataset", "import", "a.b.c", "one.csv", "--output", "json")
    assert ran.code == 6 and ran.document["error"] == "LockTimeout"
    status = run("status", "--output", "json").document
    assert [each["dataset"] for each in status["open_transactions"]] == ["a.b.c"]
    assert run("ledger", "list", "--status", "open", "--output", "json").document["transactions"][0]["status"] == "open"


def test_head_takes_the_pipe_away(run: Run, opened: lakeward.Workspace) -> None:
    opened.create_dataset("a.b.c", {"t": "string"}).write([{"t": "x" * 1000}] * 3000)
    child = process("dataset", "preview", "a.b.c", "-n", "3000", "--output", "json")
    assert child.stdout is not None and child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.wait(timeout=60) == 141
    assert child.stderr.read() == ""
    child.stderr.close()


def test_ctrl_c_leaves_the_dataset_and_says_so(run: Run, opened: lakeward.Workspace, place: Path) -> None:
    dataset = opened.create_dataset("a.b.c", {"id": "long", "t": "string"})
    dataset.write([{"id": 1, "t": "kept"}])
    with (place / "big.csv").open("w") as file:
        file.write("id,t\n")
        file.writelines(f"{number},some text that makes the line longer\n" for number in range(1_500_000))
    child = process("dataset", "import", "a.b.c", "big.csv", "--output", "json")
    deadline = time.monotonic() + 60
    while not opened.recoverable():
        assert child.poll() is None and time.monotonic() < deadline
        time.sleep(0.02)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert json.loads(out)["error"] == "Interrupted" and "Traceback" not in err
    assert (dataset.version, dataset.row_count) == (1, 1)
    # Interrupted in the very instant of its intent, it leaves an open row of a dead owner; the next write removes it.
    assert not any(left.held for left in opened.recoverable())
    dataset.write([{"id": 2, "t": "next"}])
    assert dataset.row_count == 2 and opened.recoverable() == []


GROUPS = ("catalog", "schema", "dataset", "source", "flags", "flip", "move", "ledger", "model")


@pytest.mark.parametrize("group", [[], *([name] for name in GROUPS)])
def test_no_first_sentence_of_help_is_cut(run: Run, group: list[str]) -> None:
    shown = run(*group, "--help").out.partition("Commands:")[2]
    assert shown and "..." not in shown
