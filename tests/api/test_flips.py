"""A flip over HTTP: each stage and its dry run, there and back, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import lakeward
from api.conftest import Make

WAITS = ("start", "verify", "complete")


def ask(api: TestClient, name: str, verb: str, **body: Any) -> Any:
    body = {**body, "wait": True} if verb in WAITS else body
    answer = api.post(f"/flips/{name}/{verb}", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_there_back_and_to_the_end(make: Make, api: TestClient) -> None:
    name = make().name
    assert api.get(f"/flips/{name}").json()["to"] is None
    checked = ask(api, name, "check")
    assert checked["ok"] and checked["certificate"]["rows"] == 3
    tried = ask(api, name, "start", dry_run=True)
    assert tried["dry_run"] and any(action.startswith("backfill: ") for action in tried["actions"])
    assert api.get(f"/flips/{name}").json()["to"] is None
    started = ask(api, name, "start", until="mirror")
    assert [step["stage"] for step in started["steps"]] == ["check", "backfill", "verify", "mirror"]
    assert (started["mode"], started["primary"]) == ("dual", "postgres")
    assert ask(api, name, "verify")["steps"][0]["stage"] == "verify"
    assert any("iceberg" in action for action in ask(api, name, "switch", dry_run=True)["actions"])
    assert ask(api, name, "switch")["primary"] == "iceberg"
    assert ask(api, name, "revert", dry_run=True)["actions"]
    reverted = ask(api, name, "revert")
    assert reverted["primary"] == "postgres" and reverted["undone"]
    ask(api, name, "switch")
    assert ask(api, name, "resync", dry_run=True)["actions"]
    assert ask(api, name, "resync", confirm=name)["rows"] == 3
    assert ask(api, name, "complete", dry_run=True)["actions"]
    for confirm in (None, "main.api.other"):
        refused = api.post(f"/flips/{name}/complete", json={"confirm": confirm})
        assert refused.status_code == 400 and "confirm" in refused.json()["detail"]
    completed = ask(api, name, "complete", confirm=name)
    assert (completed["mode"], completed["outcome"]) == ("iceberg_native", "completed")
    assert [event["stage"] for event in completed["events"]][-1] == "complete"
    assert api.get(f"/datasets/{name}/rows").json()["rows"][0]["id"] == 1


def test_a_flip_is_cancelled(make: Make, api: TestClient) -> None:
    name = make().name
    ask(api, name, "start", until="mirror")
    assert ask(api, name, "cancel", dry_run=True)["actions"]
    assert api.post(f"/flips/{name}/cancel").status_code == 400
    assert ask(api, name, "cancel", confirm=name)["outcome"] == "cancelled"


def test_all_flips_come_page_by_page(make: Make, api: TestClient, served_workspace: lakeward.Workspace) -> None:
    for _ in range(3):
        make(rows=0)
    found: list[str] = []
    page: str | None = None
    while True:
        answer = api.get("/flips", params={"limit": 2, **({"page": page} if page is not None else {})}).json()
        found += [each["dataset"] for each in answer["flips"]]
        page = answer["next"]
        if page is None:
            break
    assert found == sorted(each.name for each in served_workspace.datasets())


@pytest.mark.parametrize(
    ("status", "told", "verb", "body"),
    [
        (400, "no flip", "switch", {}),
        (400, "no flip", "verify", {"wait": True}),
        (400, "oracle", "start", {"to": "oracle", "wait": True}),
        (400, "stage", "start", {"until": "never", "wait": True}),
        (400, "seconds", "canary", {}),
        (400, "extra", "start", {"tu": "iceberg"}),
    ],
)
def test_what_is_refused(make: Make, api: TestClient, status: int, told: str, verb: str, body: dict[str, Any]) -> None:
    answer = api.post(f"/flips/{make(rows=0).name}/{verb}", json=body)
    assert answer.status_code in (status, 404) and told in answer.text.lower(), answer.text
    assert api.get("/flips/main.api.nope").status_code == 404
