"""The tree over HTTP: catalogs, schemas, datasets; what is expected of them, and what they are made from."""

from __future__ import annotations

from typing import Any

import pytest
from starlette.testclient import TestClient

import lakeward
from api.conftest import Make


def post(api: TestClient, path: str, status: int = 200, **body: Any) -> Any:
    answer = api.post(path, json=body)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_a_catalog_comes_and_goes_and_comes_back(api: TestClient, served_workspace: lakeward.Workspace) -> None:
    assert post(api, "/catalogs", name="Öfen & mehr")["slug"]
    assert post(api, "/schemas", name="Öfen & mehr.warm")["name"] == "Öfen & mehr.warm"
    served_workspace.create_dataset("Öfen & mehr.warm.stoves", {"id": "long"})
    assert "Öfen & mehr.warm" in {each["name"] for each in api.get("/schemas").json()["found"]}
    assert post(api, "/schemas/Öfen & mehr.warm/rename", to="hot", dry_run=True)["actions"]
    assert post(api, "/schemas/Öfen & mehr.warm/rename", to="hot")["name"] == "Öfen & mehr.hot"
    post(api, "/catalogs/Öfen & mehr/drop", 400, confirm="Öfen & mehr")
    assert post(api, "/catalogs/Öfen & mehr/drop", cascade=True, dry_run=True)["actions"]
    post(api, "/catalogs/Öfen & mehr/drop", 400, cascade=True, confirm="stoves")
    assert post(api, "/catalogs/Öfen & mehr/drop", cascade=True, confirm="Öfen & mehr")["undo_until"]
    assert "Öfen & mehr" in {each["name"] for each in api.get("/catalogs", params={"dropped": True}).json()["found"]}
    assert post(api, "/catalogs/Öfen & mehr/undrop", dry_run=True)["actions"]
    back = post(api, "/catalogs/Öfen & mehr/undrop")["back"]
    assert [each["level"] for each in back] == ["catalog", "schema", "dataset"]
    assert api.post("/catalogs/nothing/undrop").status_code == 404


def test_a_dataset_is_renamed_dropped_and_brought_back(make: Make, api: TestClient) -> None:
    name = make().name
    assert post(api, f"/datasets/{name}/rename", to='a/b "c"')["name"] == 'main.api."a/b ""c"""'
    name = 'main.api."a/b ""c"""'
    assert api.get(f"/datasets/{name}/status").json()["holders"] == ["postgres"]
    assert post(api, f"/datasets/{name}/drop", dry_run=True)["actions"]
    assert post(api, f"/datasets/{name}/drop", confirm=name)["name"] == name
    assert api.get(f"/datasets/{name}").status_code == 404
    assert name in {each["name"] for each in api.get("/dropped").json()["found"]}
    assert post(api, f"/datasets/{name}/undrop")["back"][-1]["name"] == name
    assert api.get(f"/datasets/{name}").json()["row_count"] == 3
    assert name in {each["name"] for each in api.get("/status").json()["datasets"]}


def test_what_is_expected_and_found(make: Make, api: TestClient) -> None:
    dataset = make()
    expected = ["primary_key", {"row": {"check": "amount > 0"}}]
    assert post(api, f"/datasets/{dataset.name}/expect", expectations=expected, dry_run=True)["actions"]
    assert post(api, f"/datasets/{dataset.name}/expect", expectations=expected)["changed"]
    assert len(api.get(f"/datasets/{dataset.name}/expectations").json()["expectations"]) == 2
    bad = [{"id": 9, "note": "x", "amount": -1}]
    assert api.post(f"/datasets/{dataset.name}/rows", json=bad).status_code == 422
    (found,) = api.get(f"/datasets/{dataset.name}/quality").json()["versions"]
    assert found["status"] == "aborted"
    post(api, f"/datasets/{dataset.name}/expect", 400, expectations=["no_such_thing"])
    assert post(api, f"/datasets/{dataset.name}/expect", expectations=[])["expectations"] == []


def test_columns_are_followed(make: Make, api: TestClient) -> None:
    source = make().name
    text = f"-- pipeline: traced\n-- sources: {{o: {source}}}\n-- output: main.made.traced\n-- strategy: replace\n"
    post(api, "/pipelines/apply", files={"pipelines/traced.sql": f"{text}select id, amount * 2 as twice from o"})
    post(api, "/pipelines/build", pipelines=["traced"], wait=True)
    up = api.get("/datasets/main.made.traced/lineage", params={"column": "twice"}).json()
    assert [(each["dataset"], each["column"]) for each in up["columns"][0]["links"]] == [(source, "amount")]
    down = api.get(f"/datasets/{source}/lineage", params={"direction": "down", "column": ["amount"]}).json()
    assert down["columns"][0]["links"][0]["column"] == "twice"
    assert api.get(f"/datasets/{source}/lineage", params={"column": "nope"}).status_code == 404
    post(api, "/pipelines/apply", files={})


@pytest.mark.parametrize("path", ["/catalogs", "/schemas"])
def test_names_that_can_not_be(api: TestClient, path: str) -> None:
    for name in ("", "a\0b", "a..b", '"'):
        assert api.post(path, json={"name": name}).status_code == 400, name
