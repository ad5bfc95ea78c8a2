"""Commands against a server: the same words and exit codes as here, and nothing that whoever asks may not do."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import typer

import lakeward
from lakeward.cli.app import app, main
from lakeward.cli.remote.commands import COMMANDS, Refused, Remote
from lakeward.server.frames import OUT, frames
from server.conftest import Served
from support.orders import archive

Run = Callable[..., tuple[int, str, str]]

PIPELINE = """
pipeline: big
nodes:
  orders: {source: main.remote.orders}
  big: {transform: "select * from orders where amount > 10"}
outputs:
  - {dataset: main.remote.big, from: big, strategy: replace}
"""


@pytest.fixture(scope="module", autouse=True)
def data(workspace: lakeward.Workspace) -> None:
    columns = {"id": "long", "note": "string", "amount": "double"}
    orders = workspace.create_dataset("main.remote.orders", columns, ["id"])
    orders.write([{"id": each, "note": f"n{each}", "amount": each * 7.5} for each in range(4)])
    orders.write([{"id": 1, "note": None, "amount": 1.0}], mode="upsert")
    workspace.create_dataset("main.remote.empty", {"a": "string"}, arm="iceberg")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory where commands are typed, with a project and a file."""
    project = tmp_path / "project"
    (project / "pipelines").mkdir(parents=True)
    (project / "lakeward.toml").write_text("")
    (project / "pipelines" / "big.yml").write_text(PIPELINE)
    (project / "rows.csv").write_text("id,note\n1,a\n2,é\n")
    monkeypatch.chdir(project)
    for name in ("VISUAL", "EDITOR", "LAKEWARD_SERVER", "LAKEWARD_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    return project


@pytest.fixture
def there(served: Served, here: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a command on the server."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        code = main(["--server", served.url, *map(str, arguments)])
        return (code, *capfd.readouterr())

    return run


@pytest.fixture
def local(home: Path, here: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a command on the workspace itself."""

    def run(*arguments: object) -> tuple[int, str, str]:
        capfd.readouterr()
        with monkeypatch.context() as patch:
            patch.setenv("LAKEWARD_HOME", str(home))
            code = main(list(map(str, arguments)))
        return (code, *capfd.readouterr())

    return run


def leaves(node: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not getattr(node, "commands", None):
        yield words, node
    for name, inner in getattr(node, "commands", {}).items():
        yield from leaves(inner, (*words, name))


def test_every_command_has_a_class_and_every_path_a_kind() -> None:
    found = dict(leaves(typer.main.get_command(app)))
    assert set(found) == set(COMMANDS)
    for words, command in COMMANDS.items():
        if not isinstance(command, Remote):
            continue
        parameters = {each.name: each for each in found[words].params}
        assert set(command.paths) <= set(parameters)
        # What takes a path and has no kind would read or write files of the server.
        for name, parameter in parameters.items():
            shown = str(getattr(parameter, "metavar", None) or "")
            if name != "home" and shown.strip("[].…") in ("FILE", "DIR", "FILES"):
                assert name in command.paths, (words, name)


SAME = [
    ["status"],
    ["dataset", "list", "--output", "json"],
    ["dataset", "show", "main.remote.orders"],
    ["dataset", "preview", "main.remote.orders", "--where", "amount > 5"],
    ["dataset", "changes", "main.remote.orders", "--since", "1", "--output", "json"],
    ["dataset", "history", "main.remote.orders"],
    ["dataset", "show", "main.remote.order"],
    ["dataset", "show", "main.remote.order", "--output", "json"],
    ["dataset", "preview", "main.remote.orders", "--where", "nothing = 1"],
    ["dataset", "import", "main.remote.none", "missing.csv"],
    ["dataset", "import", "main.remote.none", "/no/such/file.csv"],
    ["dataset", "export", "main.remote.orders", "rows.csv"],
    ["dataset", "drop", "main.remote.orders"],
    ["dataset", "drop", "main.remote.orders", "--dry-run"],
    ["flags", "list"],
    ["flip", "status"],
    ["flip", "check", "main.remote.order", "--to", "iceberg", "--output", "json"],
    ["move", "plan", "--all"],
    ["ledger", "list"],
    ["model", "list"],
    ["source", "list"],
    ["verify", "main.remote.empty"],
    ["sql", "select count(*) as rows from main.remote.orders"],
    ["plan"],
    ["plan", "--project", "/no/such"],
]


@pytest.mark.parametrize("arguments", SAME, ids=" ".join)
def test_the_same_command_says_the_same(there: Run, local: Run, arguments: list[str]) -> None:
    code, out, err = local(*arguments)
    assert there(*arguments) == (code, out, err), err


def test_files_go_there_and_come_back(there: Run, here: Path, tmp_path: Path) -> None:
    code, out, err = there("dataset", "import", "main.remote.sent", "rows.csv", "--key", "id", "--output", "json")
    assert (code, json.loads(out)["rows_added"], json.loads(out)["path"]) == (0, 2, "rows.csv"), err
    aside = tmp_path / "aside"
    aside.mkdir()
    for number in (3, 4):
        (aside / f"more {number}.csv").write_text(f"id,note\n{number},x\n")
    code, out, err = there("dataset", "import", "main.remote.sent", aside / "more*.csv", "--output", "json")
    assert (code, json.loads(out)["path"]) == (0, str(aside / "more*.csv")), err
    assert json.loads(out)["files"] == [str(aside / f"more {number}.csv") for number in (3, 4)]
    code, out, err = there("dataset", "export", "main.remote.sent", aside / "all.csv")
    assert code == 0 and str(aside / "all.csv") in out, err
    assert (aside / "all.csv").read_text() == "id,note\n1,a\n2,é\n3,x\n4,x\n"
    code, _, err = there("dataset", "export", "main.remote.sent", aside / "all.csv")
    assert (code, str(aside / "all.csv") in err) == (2, True)
    bad = aside / "bad.csv"
    bad.write_text("id,note\nx,y\n")
    code, _, err = there("dataset", "import", "main.remote.sent", bad)
    assert code == 1 and f"{bad}" in err and "command-" not in err


def test_a_project_is_applied_and_built(there: Run, workspace: lakeward.Workspace, here: Path) -> None:
    assert there("apply")[0] == 0
    code, _, err = there("build", "big")
    assert code == 0, err
    assert sorted(workspace.dataset("main.remote.big").to_arrow()["id"].to_pylist()) == [2, 3]


class Keyboard(io.StringIO):
    """Standard input at which somebody sits."""

    def isatty(self) -> bool:
        return True


def test_a_name_is_typed_here(there: Run, workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace.create_dataset("main.remote.typed", {"a": "string"})
    monkeypatch.setattr("sys.stdin", Keyboard("main.remote.other\n"))
    code, _, err = there("dataset", "drop", "main.remote.typed")
    assert code == 2 and "Type main.remote.typed" in err and "'main.remote.other' is not" in err
    monkeypatch.setattr("sys.stdin", Keyboard("main.remote.typed\n"))
    assert there("dataset", "drop", "main.remote.typed")[0] == 0
    assert workspace.tree.find("main.remote.typed") is None


def test_rows_are_edited_in_an_editor_of_this_machine(
    there: Run, workspace: lakeward.Workspace, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = workspace.create_dataset("main.remote.edited", {"id": "long", "note": "string"}, ["id"])
    dataset.write([{"id": 1, "note": "before"}])
    monkeypatch.setenv("EDITOR", "sed -i s/before/after/")
    code, _, err = there("dataset", "edit", "main.remote.edited", "--yes")
    assert code == 0, err
    assert dataset.to_arrow().to_pylist() == [{"id": 1, "note": "after"}]


@pytest.mark.parametrize("words", [words for words, each in COMMANDS.items() if isinstance(each, Refused)])
def test_what_is_for_its_own_machine_is_refused(there: Run, words: tuple[str, ...]) -> None:
    needed = {
        ("source", "load"): ["x.py:f", "--into", "main.a"],
        ("backup", "create"): ["x"],
        ("backup", "restore"): ["x"],
    }
    code, _, err = there(*words, *needed.get(words, []))
    assert code == 2 and "is not run on a server" in err


def test_a_server_that_is_not_there_and_a_token_that_is_never_shown(
    capfd: pytest.CaptureFixture[str], here: Path
) -> None:
    (here / "token").write_text("s3cr3t-token\n")
    for said in (["--token", "s3cr3t-token"], ["--token-file", "token"]):
        assert main(["--server", "http://127.0.0.1:9", *said, "status", "-vv"]) == 1
        told = "".join(capfd.readouterr())
        assert "can't be reached" in told and "s3cr3t" not in told
    assert main(["--server", "ftp://x", "status"]) == main(["--token", "x", "status"]) == 2
    assert main(["--server", "http://127.0.0.1:9", "status", "--home", "x"]) == 2


def test_nobody_answers_for_somebody_else(client: httpx.Client) -> None:
    answer = client.post("/commands/0123456789abcdef/answer", json={"line": "x"})
    assert answer.status_code == 404


def test_several_at_once(served: Served, there: Run) -> None:
    def ask(number: int) -> str:
        told = httpx.post(
            f"{served.url}/api/v1/commands",
            content=archive(arguments=["dataset", "preview", "main.remote.orders", "--where", f"id = {number}"]),
            headers={"Content-Type": "application/x-tar"},
            timeout=60,
        )
        return b"".join(content for kind, content in frames([told.content]) if kind == OUT).decode()

    with ThreadPoolExecutor(4) as pool:
        for number, told in enumerate(pool.map(ask, range(4))):
            assert re.search(rf"^\s*{number} ", told, re.MULTILINE) and "1 row shown" in told, told
