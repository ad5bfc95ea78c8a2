"""What an operator sees of a server: ids of requests, the log, metrics, whether it is ready; and HEAD."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Iterator
from decimal import Decimal
from threading import Event

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

import lakeward
from lakeward import logs
from lakeward.errors import CatalogError, DatabaseUnavailable
from lakeward.happenings import listen
from lakeward.redaction import Redactor
from lakeward.server.app import create_app
from lakeward.server.routes import health

Make = Callable[..., lakeward.Dataset]


@pytest.fixture(scope="module")
def here(workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The application in this process."""
    app = create_app(workspace, tmp_path_factory.mktemp("bodies"), page_rows=10, body_limit=1 << 20, streams=2)
    end = listen(app.state.rooms.measures)
    with TestClient(app, base_url="http://127.0.0.1", raise_server_exceptions=False) as client:
        yield client
    end()


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """The log, as JSON."""
    root, ours = logging.getLogger(), logging.getLogger("lakeward")
    before = root.level, ours.level, list(root.handlers)
    stream = io.StringIO()
    logs.set_up(Redactor(), form="json", level="info", stream=stream)
    yield stream
    root.setLevel(before[0])
    ours.setLevel(before[1])
    root.handlers[:] = before[2]


def samples(client: TestClient) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    text = client.get("/metrics").raise_for_status().text
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def of(found: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    return found.get((name, frozenset(labels.items())), 0.0)


def test_requests_are_counted_by_route_and_never_by_path(here: TestClient, orders: Make) -> None:
    name = orders().name
    here.get(f"/api/v1/datasets/{name}")
    here.get("/no/such/path")
    here.request("BREW", "/healthz")
    found = samples(here)
    route = "/api/v1/datasets/{name:path}"
    assert of(found, "lakeward_http_requests_total", method="GET", route=route, status="200") == 1
    assert of(found, "lakeward_http_request_seconds_count", method="GET", route=route) == 1
    assert of(found, "lakeward_http_requests_total", method="GET", route="unknown", status="404") == 1
    assert not any(name in str(labels) or "BREW" in str(labels) for _, labels in found)


def test_work_of_the_process_and_the_standing_of_the_workspace_are_measured(here: TestClient, orders: Make) -> None:
    before = samples(here)
    orders("iceberg").write([{"id": 1, "note": "a", "amount": Decimal("1.5")}])
    after = samples(here)

    def more(name: str, **labels: str) -> float:
        return of(after, name, **labels) - of(before, name, **labels)

    assert more("lakeward_write_seconds_count", outcome="ok") == 1
    for step in ("intent", "compute", "prepare", "audit", "decide", "publish"):
        assert more("lakeward_write_step_seconds_count", step=step) == 1, step
    assert of(after, "lakeward_database_up") == 1
    assert of(after, "lakeward_datasets") >= 1
    assert of(after, "lakeward_transactions_open") == 0
    assert not any(name == "lakeward_jobs" for name, _ in after)
    assert of(after, "lakeward_info", version=lakeward.__version__) == 1


def test_each_answer_has_the_id_of_its_request_and_a_line_in_the_log(here: TestClient, lines: io.StringIO) -> None:
    given = here.get("/healthz", headers={"X-Request-Id": "abc-1"})
    made = here.get("/healthz", headers={"X-Request-Id": "no\tgood"})
    refused = here.get("/healthz", headers={"Host": "elsewhere.example"})
    assert given.headers["x-request-id"] == "abc-1"
    assert len(made.headers["x-request-id"]) == 32
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    access = [each for each in said if each["logger"] == "lakeward.access"]
    assert [(each["request"], each["status"], each["route"]) for each in access] == [
        ("abc-1", 200, "/healthz"),
        (made.headers["x-request-id"], 200, "/healthz"),
        (refused.headers["x-request-id"], 421, "unknown"),
    ]
    assert access[0]["complete"] is True and access[0]["bytes"] == len(given.content)


def test_what_nobody_expected_is_found_in_the_log_by_the_id_of_its_request(
    here: TestClient, lines: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail() -> list[lakeward.Dataset]:
        raise RuntimeError("surprise")

    monkeypatch.setattr(here.app.state.rooms.workspace, "datasets", fail)  # type: ignore[attr-defined]
    answer = here.get("/api/v1/datasets", headers={"X-Request-Id": "abc-2"})
    assert (answer.status_code, answer.json()["fields"]) == (500, {"request": "abc-2"})
    said = [json.loads(line) for line in lines.getvalue().splitlines()]
    (line,) = [each for each in said if each["level"] == "error"]
    assert line["request"] == "abc-2" and "surprise" in line["error"]


def test_head_is_get_without_a_body(client: httpx.Client, orders: Make) -> None:
    dataset = orders()
    dataset.write([{"id": number, "note": "x" * 50, "amount": None} for number in range(1000)])
    path = f"/datasets/{dataset.name}/rows"
    for parameters in ({}, {"format": "arrow"}, {"format": "csv"}):
        get, head = client.get(path, params=parameters), client.head(path, params=parameters)
        assert (head.status_code, head.content) == (200, b"")
        assert head.headers["content-type"] == get.headers["content-type"]
    assert client.head("/datasets/no.such.one").status_code == 404
    # Nothing of it is left open.
    assert "lakeward_http_streams_open 0.0" in client.get(str(client.base_url.copy_with(path="/metrics"))).text


def test_so_many_streams_may_be_open_at_a_time(here: TestClient, orders: Make) -> None:
    dataset = orders()
    dataset.write([{"id": 1, "note": None, "amount": None}])
    streams = here.app.state.rooms.streams  # type: ignore[attr-defined]
    for _ in range(2):
        streams.begin()
    refused = here.get(f"/api/v1/datasets/{dataset.name}/rows", params={"format": "csv"})
    for _ in range(2):
        streams.end()
    assert (refused.status_code, refused.json()["title"]) == (503, "Busy")
    assert here.get(f"/api/v1/datasets/{dataset.name}/rows", params={"format": "csv"}).status_code == 200


def test_it_is_ready_when_all_is_well_and_says_what_is_not(here: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    assert here.get("/readyz").json() == {"status": "ok", "login": "none"}

    def down() -> None:
        raise DatabaseUnavailable("Postgres can't be reached", next_step="start it")

    def refuses() -> None:
        raise CatalogError("the catalog says no")

    monkeypatch.setattr(health, "readiness", lambda _: {"database": down, "catalog": refuses, "warehouse": list})
    answer = here.get("/readyz")
    assert (answer.status_code, answer.headers["content-type"]) == (503, "application/problem+json")
    assert answer.json()["fields"] == {
        "not_ready": {"database": "Postgres can't be reached", "catalog": "the catalog says no"}
    }
    assert answer.json()["next_steps"] == ["start it"]


def test_what_hangs_is_named_in_time(here: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    released = Event()
    monkeypatch.setattr(health, "LIMIT_SECONDS", 0.05)
    monkeypatch.setattr(health, "readiness", lambda _: {"catalog": released.wait})
    answer = here.get("/readyz")
    released.set()
    assert answer.json()["fields"]["not_ready"] == {"catalog": "it does not answer within 0.05 s"}


def test_tables_of_another_version_are_not_ready(here: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lakeward.wiring.readiness.HEAD", "m9999")
    answer = here.get("/readyz")
    assert "this server knows m9999" in answer.json()["fields"]["not_ready"]["database"]
