"""Pipelines over HTTP: planned and applied from texts, shown, built, removed; single queries run into datasets."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import lakeward
from api.conftest import Make


def files(name: str, source: str, where: str = "true") -> dict[str, str]:
    text = f"""
pipeline: {name}
tags: [daily]
nodes:
  orders: {{source: {source}}}
  kept: {{transform: "select * from orders where {where}"}}
  halves: {{split: {{input: kept, where: "id > 2", true: large, false: small}}}}
outputs:
  - {{dataset: main.made.{name}, from: large, strategy: replace, primary_key: [id]}}
schedule: "0 6 * * *"
"""
    return {f"pipelines/{name}.yml": text}


def post(api: TestClient, path: str, status: int = 200, **body: Any) -> Any:
    answer = api.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_from_files_to_rows(make: Make, api: TestClient, served_workspace: lakeward.Workspace) -> None:
    source = make().name
    plan = post(api, "/pipelines/plan", files=files("first", source))
    (planned,) = (each for each in plan["pipelines"] if each["name"] == "first")
    assert (plan["pending"], planned["change"], planned["outputs"][0]["action"]) == (True, "added", "create")
    post(api, "/pipelines/apply", 409, files=files("first", source, "id > 0"), expect_plan=plan["plan"])
    post(api, "/pipelines/apply", files=files("first", source), expect_plan=plan["plan"])
    assert not post(api, "/pipelines/plan", files=files("first", source))["pending"]
    assert "first" in {each["name"] for each in api.get("/pipelines").json()["pipelines"]}

    shown = api.get("/pipelines/first").json()
    assert [(each["name"], each["kind"]) for each in shown["graph"]["nodes"]] == [
        ("orders", "source"), ("kept", "transform"), ("halves", "split"), ("main.made.first", "output"),
    ]  # fmt: skip
    assert {"from": "halves", "to": "main.made.first"} in shown["graph"]["edges"]
    assert (
        shown["schedule"] == "0 6 * * *" and shown["spec"]["tags"] == ["daily"] and "pipeline: first" in shown["text"]
    )

    assert "first" in post(api, "/pipelines/build", pipelines=["first"], dry_run=True)["actions"][0]
    assert post(api, "/pipelines/explain", pipelines=["first"])["outputs"][0]["dataset"] == "main.made.first"
    (built,) = post(api, "/pipelines/build", pipelines=["first"], wait=True)["builds"]
    assert built["transactions"][0]["row_count"] == 1
    queued = post(api, "/pipelines/build", 202, pipelines=["first"])
    assert api.post(f"/jobs/{queued['job']}/cancel").json()["kind"] == "build"
    assert api.get("/datasets/main.made.first/history").json()["transactions"][0]["pipeline"] == "first"

    assert api.delete("/pipelines/first").status_code == 204
    assert api.delete("/pipelines/first").status_code == api.get("/pipelines/first").status_code == 404
    assert served_workspace.dataset("main.made.first").row_count == 1


def test_one_query_into_a_dataset(make: Make, api: TestClient) -> None:
    source = make().name
    query = {"sql": f"select * from {source} where id > 1", "into": "main.made.large", "primary_key": ["id"]}
    assert post(api, "/pipelines/run", **query, dry_run=True)["actions"]
    assert post(api, "/pipelines/run", **query)["transactions"][0]["rows_added"] == 2
    assert "strategy" in post(api, "/pipelines/run", 400, **query)["next_steps"][0]
    assert "line 1" in post(api, "/pipelines/run", 400, sql="select nope", into="main.made.no")["detail"]


@pytest.mark.parametrize(
    ("path", "text", "status", "told"),
    [
        ("../../etc/cron.d/x", "", 400, "no path"),
        ("/etc/passwd", "", 400, "no path"),
        ("pipelines/a\0.sql", "", 400, "no path"),
        ("pipelines", "a file where a folder has to be", 400, "one folder"),
        ("pipelines/" + "a" * 300 + ".sql", "", 400, "one folder"),
        ("pipelines/a.yml", "pipeline: [", 400, "pipelines/a.yml:1"),
        ("pipelines/a.yml", "pipeline: a\nnodes: {}\noutput: []", 400, "pipelines/a.yml"),
        ("pipelines/evil.py", "import os; os.abort()", 403, "server.allow_code"),
        ("PIPELINES/EVIL.PY", "import os; os.abort()", 403, "server.allow_code"),
    ],
)
def test_what_is_refused_says_nothing_of_this_machine(
    api: TestClient, path: str, text: str, status: int, told: str
) -> None:
    both = {path: text, "pipelines/b.sql": "select 1 as a"}
    answer = api.post("/pipelines/plan", json={"files": both})
    assert answer.status_code == status and told in answer.json()["detail"] + str(answer.json()["next_steps"]), (
        answer.text
    )
    assert "project-" not in answer.text and "/tmp" not in answer.text
