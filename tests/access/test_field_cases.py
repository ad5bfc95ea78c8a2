"""S01 to S04 of the field cases over HTTP: what comes in by a request neither leaves its place, nor runs, nor tells."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import lakeward
from lakeward.access.guard import closed, itself
from lakeward.access.roles import Role
from lakeward.server.app import create_app
from lakeward.server.logins import Logins
from lakeward.server.rates import Rates

ODD = ["../../esc", "a/../../b", "..", "/etc/x", "file:///x", "%2e%2e%2f", "C:\\x", 'x"; drop table t; --', "a'b"]
PYTHON = "def touch(rows):\n    open({path!r}, 'w').close()\n    return rows\n"


@pytest.fixture(scope="module")
def client(ws: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of a builder."""
    app = create_app(
        ws,
        tmp_path_factory.mktemp("cases"),
        page_rows=10,
        body_limit=1 << 20,
        logins=Logins(ws.access, Rates(None), hours=1),
    )
    with itself():
        _, text = ws.access.add_token("a builder", role=Role.BUILDER)
    headers = {"Authorization": f"Bearer {text}"}
    with closed(), TestClient(app, base_url="http://localhost/api/v1", headers=headers) as opened:
        yield opened


@pytest.mark.parametrize("name", ODD)
def test_s01_s03_odd_names_are_plain_names(ws: lakeward.Workspace, client: TestClient, name: str) -> None:
    """Tables and files are called by slugs, below the warehouse, and quotes end nothing."""
    full = f'cases.s."{name.replace(chr(34), chr(34) * 2)}"'
    made = client.post("/datasets", json={"name": full, "columns": {name: "string"}, "arm": "iceberg"})
    assert made.status_code == 201, made.text
    # Once more than a browser or program would: the client of tests decodes a path twice.
    path = f"/datasets/{quote(made.json()['name'].replace('%', '%25'), safe='')}/rows"
    assert client.post(path, json=[{name: "'; select pg_sleep(5); --"}]).status_code == 200
    assert client.get(path).json()["rows"] == [{name: "'; select pg_sleep(5); --"}]
    assert client.get(path, params={"where": "1) or (1=1"}).status_code == 400
    root = Path(str(ws.settings.values.warehouse)).resolve()
    with itself():
        place = ws.dataset(made.json()["name"]).locate()["iceberg"]
    assert all(str(root) in each for each in place.values() if "/" in each)
    assert not (root.parent / "esc").exists()


def test_s01_a_name_that_nothing_can_hold_is_refused(client: TestClient) -> None:
    """With its reason, and not by a crash."""
    refused = client.post("/datasets", json={"name": 'cases.s."a\0b"', "columns": {"id": "long"}})
    assert refused.status_code == 400


def test_s04_nobody_brings_code_who_may_not_run_it(client: TestClient, tmp_path: Path) -> None:
    """Neither as a pipeline of a project, nor as a pickle that calls itself a model; and the marker never appears."""
    marker = tmp_path / "pwned"
    pipeline = (
        "pipeline: p\nnodes:\n  o: {source: cases.s.o}\n"
        "  c: {python: {input: o, call: 'touching:touch', outputs: {id: long}}}\n"
        "outputs:\n  - {dataset: cases.s.p, from: c, strategy: replace}\n"
    )
    client.post("/datasets", json={"name": "cases.s.o", "columns": {"id": "long"}})
    files = {"lakeward.toml": "", "pipelines/p.yml": pipeline, "python/touching.py": PYTHON.format(path=str(marker))}
    applied = client.post("/pipelines/apply", json={"files": files})
    assert applied.status_code in (400, 403), applied.text

    class Marker:
        def __reduce__(self) -> object:
            return open, (str(marker), "w")

    sent = client.post("/models", params={"name": "m"}, content=pickle.dumps(Marker()))
    assert 400 <= sent.status_code < 500
    assert not marker.exists()
