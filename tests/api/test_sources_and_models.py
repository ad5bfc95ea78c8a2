"""Sources and models over HTTP: secrets stay where they are, and nothing is run or reached that should not be."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from lakeward.access.guard import acting
from lakeward.access.principal import Grant, Principal
from lakeward.access.roles import Role
from lakeward.errors import NotAllowed
from lakeward.server.routes.sources import _check_reach
from support.onnx_models import linear


def test_files_are_added_looked_at_and_synced(api: TestClient, tmp_path: Path) -> None:
    (tmp_path / "cities.csv").write_text("id,city\n1,Bonn\n2,Ulm\n")
    options = {"path": f"cities={tmp_path}/*.csv"}
    added = api.post("/sources", json={"name": "towns", "type": "files", "options": options})
    assert added.status_code == 201, added.text
    assert api.post("/sources", json={"name": "towns", "type": "files", "options": options}).status_code == 409
    assert [each["name"] for each in api.get("/sources").json()["sources"]] == ["towns"]
    assert api.get("/sources/towns").json()["options"]["path"]
    assert [each["table"] for each in api.get("/sources/towns/tables").json()["tables"]] == ["cities"]
    tried = api.post("/sources/towns/sync", json={"dry_run": True, "into": "main.towns"}).json()
    assert tried["actions"], tried
    synced = api.post("/sources/towns/sync", json={"wait": True, "into": "main.towns", "key": ["id"]}).json()
    assert synced["datasets"][0]["rows_read"] == 2, synced
    queued = api.post("/sources/towns/sync", json={"into": "main.towns"})
    assert queued.status_code == 202
    api.post(f"/jobs/{queued.json()['job']}/cancel")
    assert api.get("/datasets/main.towns.cities").json()["row_count"] == 2
    assert api.delete("/sources/towns").status_code == 204
    assert api.get("/sources/towns").status_code == api.post("/sources/towns/sync").status_code == 404


def test_a_password_is_neither_taken_nor_told(api: TestClient) -> None:
    secret = {"name": "shop", "type": "postgres", "options": {"url": "postgresql://ana:hunter2@127.0.0.1:1/shop"}}
    answer = api.post("/sources", json=secret)
    assert answer.status_code == 400 and "hunter2" not in answer.text, answer.text


def test_who_may_not_do_all_reaches_nothing_through_the_server(api: TestClient) -> None:
    app = api.app
    assert isinstance(app, FastAPI)
    builder = Principal("ben", (Grant(Role.BUILDER),))
    with acting(builder), pytest.raises(NotAllowed, match="only an admin"):
        _check_reach(app.state.rooms)


def test_a_model_is_added_by_its_file(api: TestClient) -> None:
    def add(content: bytes, **fields: Any) -> Any:
        given = {"name": "leaving", "feature": ["amount", "age"], "output": ["risk=y"], **fields}
        return api.post("/models", data=given, files={"file": ("../../risk.onnx", content)})

    first = add(linear([1.0, 2.0]))
    assert first.status_code == 200, first.text
    assert (first.json()["reference"], first.json()["origin"], first.json()["new"]) == ("leaving@1", "risk.onnx", True)
    assert add(linear([1.0, 2.0])).json()["new"] is False
    assert [each["version"] for each in api.get("/models", params={"model": "leaving"}).json()["models"]] == [1]
    assert api.get("/models/leaving@1").json()["features"][0]["name"] == "amount"
    assert api.get("/models/leaving@9").status_code == 404
    evil = pickle.dumps({"a": 1})
    refused = add(evil)
    assert refused.status_code == 422 and "/tmp" not in refused.text, refused.text
    assert add(evil, format="pickle", allow_pickle="true", sha256="00").status_code == 403
    assert add(b"").status_code == 422
