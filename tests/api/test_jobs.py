"""Jobs over HTTP: queued by what takes its time, shown, followed, cancelled and begun again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from threading import Thread
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient

import lakeward
from api.conftest import Make
from api.test_events import events
from lakeward.jobs.queue import Jobs
from lakeward.jobs.worker import Worker


@pytest.fixture
def idle(served_workspace: lakeward.Workspace) -> Iterator[Jobs]:
    """The queue, which nobody works on, and which is empty again afterwards."""
    queue = Jobs(served_workspace)
    yield queue
    for job in queue.list(statuses=["waiting"]):
        queue.cancel(job.id)


def test_long_work_is_queued_and_looked_at(make: Make, api: TestClient, idle: Jobs) -> None:
    name = make().name
    queued = api.post(f"/flips/{name}/start", json={"until": "check"})
    assert queued.status_code == 202, queued.text
    number = queued.json()["job"]
    assert queued.headers["location"] == queued.json()["url"] == f"/api/v1/jobs/{number}"
    shown = api.get(f"/jobs/{number}").json()
    assert (shown["kind"], shown["status"], shown["options"]["dataset"]) == ("flip", "waiting", name)
    again = api.post("/jobs", json={"kind": "flip", "options": {"dataset": name, "until": "check"}}).json()
    assert again["job"] == number
    for path, body in (
        (f"/flips/{name}/verify", {}),
        (f"/flips/{name}/canary", {"seconds": 1}),
        ("/moves/apply", {"all": True}),
        ("/parity/recheck", {}),
    ):
        assert api.post(path, json=body).status_code == 202
    first = api.get("/jobs", params={"limit": 2, "status": "waiting"}).json()
    second = api.get("/jobs", params={"limit": 2, "page": first["next"]}).json()
    assert [each["id"] for each in [*first["jobs"], *second["jobs"]]] == sorted(
        (each["id"] for each in [*first["jobs"], *second["jobs"]]), reverse=True
    )
    assert api.post(f"/jobs/{number}/cancel").json()["status"] == "cancelled"
    assert api.post(f"/jobs/{number}/retry").json()["status"] == "waiting"
    assert api.get(f"/jobs/{number}/log").json() == {"lines": [], "last": 0}
    assert "flip" in {each["name"] for each in api.get("/jobs/kinds").json()["kinds"]}


def test_a_job_is_followed_to_its_end(make: Make, live: str, idle: Jobs, served_workspace: lakeward.Workspace) -> None:
    name = make().name
    with httpx.Client(timeout=60) as client:
        url = client.post(f"{live}/flips/{name}/start", json={"until": "check"}).json()["url"]
        with client.stream("GET", f"{live.removesuffix('/api/v1')}{url}/events") as answer:
            following = events(answer.iter_lines())
            first = next(following)
            assert (first["event"], first["data"]["status"]) == ("job", "waiting")
            worker = Thread(target=Worker(served_workspace, once=True).run)
            worker.start()
            told = list(following)
            worker.join()
        assert (told[-1]["event"], told[-1]["data"]["status"]) == ("ended", "succeeded"), told
        lines = [each for each in told if each["event"] == "log"]
        assert lines, told
        header = {"Last-Event-ID": lines[-1]["id"]}
        with client.stream("GET", f"{live.removesuffix('/api/v1')}{url}/events", headers=header) as again:
            assert [each["event"] for each in events(again.iter_lines())][-1] == "ended"


@pytest.mark.parametrize(
    ("status", "told", "body"),
    [
        (404, "fold", {"kind": "fold"}),
        (404, "option", {"kind": "recover", "options": {"deep": True}}),
        (400, "jobs", {"kind": "build", "options": {"jobs": 99}}),
        (400, "run_at", {"kind": "recover", "run_at": "2100-01-01T00:00:00"}),
        (404, "main.api.nope", {"kind": "flip", "options": {"dataset": "main.api.nope"}}),
    ],
)
def test_what_is_not_queued(api: TestClient, idle: Jobs, status: int, told: str, body: dict[str, Any]) -> None:
    answer = api.post("/jobs", json=body)
    assert answer.status_code == status and told in json.dumps(answer.json()), answer.text
    assert api.get("/jobs/4711000").status_code == 404
