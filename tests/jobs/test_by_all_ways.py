"""Syncs, moves and rechecks: queued by command, over HTTP and by time, done by a worker, and seen in the datasets."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import lakeward
from lakeward.cli.app import main
from lakeward.jobs.job import SUCCEEDED
from lakeward.jobs.queue import Jobs
from lakeward.jobs.schedules import Schedules
from lakeward.jobs.worker import Worker
from lakeward.server.app import create_app

Queue = Callable[[str, Mapping[str, Any]], int]

SCHEDULE = """
[jobs.schedules.{kind}]
cron = "0 3 * * *"
kind = "{kind}"
options = {{ {options} }}
"""


@pytest.fixture(params=["command", "http", "schedule"])
def ask(
    request: pytest.FixtureRequest,
    workspace: lakeward.Workspace,
    database_url: str,
    warehouse: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Queue]:
    """Queues a job in one of the ways that there are."""

    def command(kind: str, options: Mapping[str, Any]) -> int:
        monkeypatch.setenv("LAKEWARD_DATABASE_URL", database_url)
        monkeypatch.setenv("LAKEWARD_WAREHOUSE", str(warehouse))
        words = [
            f"{name}={value}"
            for name, given in options.items()
            for value in (given if isinstance(given, list) else [given])
        ]
        capsys.readouterr()
        assert main(["job", "add", kind, *words, "--output", "json"]) == 0
        return int(json.loads(capsys.readouterr().out)["id"])

    def http(kind: str, options: Mapping[str, Any]) -> int:
        app = create_app(workspace, tmp_path, page_rows=10, body_limit=1 << 20)
        with TestClient(app, base_url="http://localhost/api/v1") as client:
            answer = client.post("/jobs", json={"kind": kind, "options": options})
        assert answer.status_code == 202, answer.text
        return int(answer.json()["job"])

    def schedule(kind: str, options: Mapping[str, Any]) -> int:
        path = tmp_path / "lakeward.toml"
        text = ", ".join(f"{name} = {json.dumps(value)}" for name, value in options.items())
        path.write_text(SCHEDULE.format(kind=kind, options=text), encoding="utf-8")
        with lakeward.open(database_url=database_url, warehouse=warehouse, settings_file=path) as scheduled:
            for hour in (2, 3):
                found = Schedules(Jobs(scheduled), lambda: datetime(2026, 3, 2, hour, tzinfo=UTC)).look()  # noqa: B023
        return found[0]

    yield {"command": command, "http": http, "schedule": schedule}[request.param]


def test_it_is_done_and_seen(
    ask: Queue, workspace: lakeward.Workspace, queue: Jobs, database_url: str, warehouse: Path, tmp_path: Path
) -> None:
    name = f"s{tmp_path.name[-6:]}".replace("_", "")
    file = tmp_path / "orders.csv"
    file.write_text("id,note\n1,a\n2,b\n", encoding="utf-8")
    workspace.sources.add(name, "files", {"path": [str(file)]})
    (tmp_path / "legacy.toml").write_text("[iceberg]\nborn_in_place = false\n", encoding="utf-8")
    with lakeward.open(
        database_url=database_url, warehouse=warehouse, settings_file=tmp_path / "legacy.toml"
    ) as legacy:
        flipped = legacy.create_dataset(f"main.{name}.flipped", {"id": "long"}, ["id"])
        flipped.write([{"id": 1}, {"id": 2}])
        legacy.flip(flipped.name).run(to="iceberg")
        assert legacy.dataset(flipped.name).record.identifier.parts[0] == "datasets"
    wanted: tuple[tuple[str, dict[str, Any]], ...] = (
        ("sync", {"source": name, "key": ["id"]}),
        ("move", {"names": [flipped.name]}),
        ("recheck", {"datasets": [flipped.name], "older_than": 0}),
    )
    jobs = [ask(kind, options) for kind, options in wanted]
    Worker(workspace, once=True).run()
    ended = [queue.get(each) for each in jobs]
    assert [each.status for each in ended] == [SUCCEEDED] * 3, [each.error for each in ended]
    assert workspace.dataset(f"main.{name}.orders").to_arrow()["note"].to_pylist() == ["a", "b"]
    moved = workspace.dataset(flipped.name)
    assert moved.record.identifier.parts == ("main", name, "flipped") and moved.to_arrow().num_rows == 2
    assert ended[2].result == {
        "datasets": [{"dataset": moved.name, "outcome": "equal", "version": 1, "rows": 2, "error": None}]
    }
