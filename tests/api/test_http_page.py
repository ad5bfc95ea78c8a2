"""Every `curl` of docs/http.md works as it is written, one after the other."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

import lakeward
from api.conftest import COLUMNS
from support.onnx_models import linear

PAGE = Path(__file__).resolve().parents[2] / "docs" / "http.md"


def commands() -> list[list[str]]:
    """Return the words of each command."""
    blocks = re.findall(r"^```bash\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [shlex.split(line.partition(" > ")[0]) for line in lines if line.startswith("curl ")]


@pytest.fixture(scope="module")
def folder(served_workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """What the commands find where they are called, and in the workspace."""
    orders = served_workspace.create_dataset("main.sales.orders", COLUMNS, ["id"])
    for number in range(1, 4):
        orders.write([{"id": number, "note": "first", "amount": 12 * number}])
    served_workspace.create_dataset("main.sales.returns", COLUMNS)
    folder = tmp_path_factory.mktemp("page")
    (folder / "risk.onnx").write_bytes(linear([1.0, 2.0]))
    text = "-- pipeline: page\n-- sources: {o: main.sales.orders}\n-- output: main.made.page\n-- strategy: replace\n"
    files = {"lakeward.toml": "", "pipelines/page.sql": f"{text}select id from o"}
    (folder / "project.json").write_text(json.dumps({"files": files}))
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(content)
    served_workspace.apply(folder)
    yield folder
    (folder / "pipelines" / "page.sql").unlink()
    served_workspace.apply(folder)


def ask(client: httpx.Client, words: list[str], folder: Path, job: int) -> int:
    """Do what a command says, and return the status; of a stream without end, once it has begun."""
    method, headers, body, form, endless, url = "GET", {}, None, [], False, ""
    rest = iter(words[1:])
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-H":
            name, _, value = next(rest).partition(": ")
            headers[name] = value
        elif word == "-d":
            text = next(rest)
            body, method = ((folder / text[1:]).read_text() if text.startswith("@") else text), "POST"
        elif word == "-F":
            form.append(next(rest).partition("=")[::2])
        elif word == "-N":
            endless = True
        else:
            assert not word.startswith("-"), word
            url = word.partition("/api/v1")[2].replace("/jobs/17/", f"/jobs/{job}/")
    files = {name: (folder / value[1:]).open("rb") for name, value in form if value.startswith("@")}
    fields: dict[str, list[str]] = {}
    for name, value in form:
        if not value.startswith("@"):
            fields.setdefault(name, []).append(value)
    with client.stream(method, url, headers=headers, content=body, data=fields or None, files=files or None) as answer:
        if not endless or answer.status_code != 200:
            answer.read()
            assert answer.status_code < 300, (words, answer.text)
    return answer.status_code


def test_every_command_works(live: str, folder: Path) -> None:
    found = commands()
    assert len(found) > 20
    with httpx.Client(base_url=live, timeout=60) as client:
        for words in found:
            jobs = client.get("/jobs").json()["jobs"]
            assert ask(client, words, folder, jobs[0]["id"] if jobs else 0) in (200, 202)
        for job in client.get("/jobs", params={"status": "waiting"}).json()["jobs"]:
            client.post(f"/jobs/{job['id']}/cancel")
