"""Parity, flags, moves and the ledger over HTTP."""

from __future__ import annotations

from typing import Any

from starlette.testclient import TestClient

import lakeward
from api.conftest import Make


def post(api: TestClient, path: str, **body: Any) -> Any:
    answer = api.post(path, json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_comparisons_and_what_is_accepted(make: Make, api: TestClient) -> None:
    dataset = make()
    name = dataset.name
    post(api, f"/flips/{name}/start", until="mirror", wait=True)
    assert len(post(api, f"/datasets/{name}/verify")["digests"]) == 2
    assert post(api, "/parity/recheck", datasets=[name], wait=True)["datasets"][0]["outcome"] == "equal"
    first = api.get(f"/datasets/{name}/comparisons", params={"kind": "full", "limit": 1}).json()
    assert first["comparisons"][0]["equal"] and first["next"] is not None
    second = api.get(f"/datasets/{name}/comparisons", params={"kind": "full", "page": first["next"]}).json()
    assert second["comparisons"][0]["id"] < first["comparisons"][0]["id"]
    assert api.get(f"/datasets/{name}/comparisons", params={"kind": "half"}).status_code == 404
    rule = {"column": "note", "reason": "spaces", "until": "2100-01-01T00:00:00Z"}
    assert post(api, f"/datasets/{name}/accepted", **rule)["expired"] is False
    assert api.post(f"/datasets/{name}/accepted", json={**rule, "until": "2100-01-01T00:00:00"}).status_code == 400
    assert [each["column"] for each in api.get(f"/datasets/{name}/accepted").json()["rules"]] == ["note"]
    assert api.delete(f"/datasets/{name}/accepted", params={"column": "note"}).status_code == 204
    assert api.delete(f"/datasets/{name}/accepted", params={"column": "note"}).status_code == 404


def test_flags_are_set_and_taken_back(make: Make, api: TestClient) -> None:
    name = make().name
    flag = {"kind": "reader", "name": "export", "dataset": name}
    assert post(api, "/flags/set", **flag, value="shadow", dry_run=True)["actions"]
    assert post(api, "/flags/set", **flag, value="shadow") == {"changed": True}
    shown = {each["name"]: each for each in api.get("/flags", params={"dataset": name}).json()["flags"]}
    assert (shown["export"]["value"], shown["export"]["source"]) == ("shadow", "dataset")
    assert post(api, "/flags/clear", **flag) == {"changed": True}
    assert api.post("/flags/set", json={**flag, "value": "sideways"}).status_code in (400, 404)
    assert api.post("/flags/set", json={**flag, "kind": "writers", "value": "pg"}).status_code == 400


def test_moves(make: Make, api: TestClient) -> None:
    dataset = make("iceberg")
    assert dataset.name in {each["dataset"] for each in api.get("/moves").json()["tables"]}
    assert api.get("/moves/plan", params={"name": [dataset.name, "main.api"]}).json()["moves"] == []
    assert api.post("/moves/apply").status_code == 400
    assert post(api, "/moves/apply", names=[dataset.name], dry_run=True)["actions"] == []
    assert post(api, "/moves/apply", names=[dataset.name], wait=True)["datasets"][0]["outcome"] == "done"
    assert post(api, "/moves/undo", names=[dataset.name], dry_run=True)["actions"] == []
    assert api.get("/moves/plan", params={"name": "main.nothing"}).status_code == 404


def test_the_ledger_page_by_page(make: Make, api: TestClient, served_workspace: lakeward.Workspace) -> None:
    dataset = make()
    for number in range(4, 8):
        dataset.write([{"id": number, "note": "more", "amount": 1}])
    found: list[int] = []
    page: int | None = None
    for _ in range(3):
        given = {"most": 2, **({"page": page} if page is not None else {})}
        answer = api.get(f"/datasets/{dataset.name}/history", params=given).json()
        found += [each["version"] for each in answer["transactions"]]
        page = answer["next"]
    assert (found, page) == ([5, 4, 3, 2, 1], None)
    newest = api.get("/ledger", params={"limit": 2}).json()
    older = api.get("/ledger", params={"limit": 2, "page": newest["next"], "status": "committed"}).json()
    ids = [each["id"] for each in [*newest["transactions"], *older["transactions"]]]
    assert ids == sorted(ids, reverse=True) and len(set(ids)) == 4
    assert api.get("/ledger", params={"status": "closed"}).status_code == 400
    assert post(api, "/ledger/recover", dry_run=True)["actions"] == []
    assert post(api, "/ledger/recover")["recovered"] == []


def test_settings_are_told_without_secrets(api: TestClient, served_workspace: lakeward.Workspace) -> None:
    answer = api.get("/settings")
    shown = {each["name"]: each for each in answer.json()["settings"]}
    assert shown["server.page_rows"]["source"] == "default" and shown["database_url"]["value"] == "***"
    url = served_workspace.settings.values.database_url
    assert url is not None and url.get_secret_value() not in answer.text


def test_who_changed_what(make: Make, api: TestClient) -> None:
    dataset = make()
    post(api, f"/datasets/{dataset.name}/rename", to="audited")
    found = api.get("/audit", params={"action": "dataset.rename", "limit": 1}).json()["lines"]
    assert found[0]["after"] == {"name": "audited"} and found[0]["actor"]
    assert api.get("/audit", params={"since": "2100-01-01T00:00:00Z"}).json()["lines"] == []


def test_a_text_with_a_nul_is_refused_wherever_it_is_asked_for(api: TestClient) -> None:
    for path, name in (("/models", "model"), ("/jobs", "by"), ("/audit", "who"), ("/flags", "dataset")):
        answer = api.get(path, params={name: "a\0b"})
        assert answer.status_code in (400, 404), (path, answer.text)
