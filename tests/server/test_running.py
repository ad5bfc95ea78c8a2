"""The server as a process: it ends well, dies without harm, breaks off what it can't finish, and serves many."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import StorageError
from server.conftest import Served, serving

Make = Callable[..., lakeward.Dataset]


def test_it_is_alive_and_ready(served: Served) -> None:
    assert httpx.get(f"{served.url}/healthz").json() == {"status": "ok"}
    assert httpx.get(f"{served.url}/readyz").json() == {"status": "ok", "login": "none"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_answers_what_is_under_way_and_ends_well(
    home: Path, workspace: lakeward.Workspace, orders: Make, number: int
) -> None:
    dataset = orders()
    with serving(home) as running, running.client() as client:
        begun, go_on = threading.Event(), threading.Event()

        def slow() -> Iterator[bytes]:
            yield b'{"id": 1, "note": "a", "amount": 1}\n'
            begun.set()
            assert go_on.wait(30)
            yield b'{"id": 2, "note": "b", "amount": 2}\n'

        headers = {"Content-Type": "application/x-ndjson"}
        # Whoever follows what goes on would do so for long: that ends with the server.
        with ThreadPoolExecutor(1) as pool, client.stream("GET", "/events") as following:
            assert following.status_code == 200
            answer = pool.submit(client.post, f"/datasets/{dataset.name}/rows", content=slow(), headers=headers)
            assert begun.wait(30)
            running.process.send_signal(number)
            go_on.set()
            assert answer.result().json()["rows_added"] == 2
        assert running.process.wait(60) == 0
    assert dataset.row_count == 2


def test_killed_under_load_it_leaves_whole_versions(home: Path, workspace: lakeward.Workspace, orders: Make) -> None:
    dataset = orders("iceberg")
    acknowledged: list[int] = []
    with serving(home) as running:

        def write(first: int) -> None:
            with running.client() as client:
                for number in range(first, first + 1_000_000, 10):
                    rows = [{"id": number + each, "note": "n", "amount": 1} for each in range(10)]
                    answer = client.post(f"/datasets/{dataset.name}/rows", json=rows)
                    if answer.status_code == 200:
                        acknowledged.append(number)
                        if len(acknowledged) == 6:
                            running.process.kill()

        with ThreadPoolExecutor(3) as pool:
            ended = [pool.submit(write, first) for first in (0, 10_000_000, 20_000_000)]
            assert all(isinstance(each.exception(), httpx.TransportError) for each in ended)
    workspace.recover()
    found = dataset.to_arrow()["id"].to_pylist()
    assert {number + each for number in acknowledged for each in range(10)} <= set(found)
    assert len(found) == len(set(found)) == dataset.row_count and len(found) % 10 == 0


def test_a_stream_that_can_not_be_finished_is_never_taken_for_whole(
    workspace: lakeward.Workspace, client: httpx.Client, orders: Make
) -> None:
    dataset = orders("iceberg")
    for first in range(0, 60_000, 30_000):
        dataset.write([{"id": first + each, "note": "n" * 50, "amount": None} for each in range(30_000)])
    place = Path(dataset.locate()["iceberg"]["location"].removeprefix("file://"))
    newest = max(place.glob("data/**/*.parquet"), key=lambda file: file.stat().st_mtime_ns)
    content = newest.read_bytes()
    newest.write_bytes(content[:4] + bytes(len(content) // 2) + content[4 + len(content) // 2 :])
    rows = f"/datasets/{dataset.name}/rows"
    for format in ("arrow", "csv", "ndjson"):
        try:
            answer = client.get(rows, params={"format": format})
        except httpx.RemoteProtocolError:
            continue
        assert answer.status_code >= 500, answer.text[:200]
    assert client.get("/datasets").status_code == 200
    with pytest.raises(StorageError):
        dataset.to_arrow()


def test_many_write_at_once_and_nobody_is_lost(served: Served, orders: Make) -> None:
    dataset = orders()

    def write(worker: int) -> int:
        written = 0
        with served.client() as client:
            for turn in range(4):
                rows = [{"id": worker * 100 + turn, "note": None, "amount": None}]
                answer = client.post(f"/datasets/{dataset.name}/rows", json=rows)
                assert answer.status_code == 200, answer.text
                written += answer.json()["rows_added"]
                assert client.get(f"/datasets/{dataset.name}/rows").status_code == 200
        return written

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(write, range(6))) == dataset.row_count == 24
    assert dataset.version == 24


def test_the_description_tells_of_every_route(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            assert operation["summary"] and operation["description"], (method, path)
            if path.startswith("/api/"):
                problem = operation["responses"]["4XX"]["content"]["application/problem+json"]["schema"]
                assert problem["$ref"].endswith("Problem")
    assert {"/healthz", "/readyz", "/api/v1/datasets", "/api/v1/datasets/{name}/rows"} <= set(document["paths"])
    assert json.dumps(document).count("Problem") > 5


def test_arrow_comes_in_batches(client: httpx.Client, orders: Make) -> None:
    dataset = orders("iceberg")
    table = pa.table({"id": range(300_000), "note": ["n"] * 300_000, "amount": pa.nulls(300_000, pa.decimal128(18, 4))})
    dataset.write(table)
    with client.stream("GET", f"/datasets/{dataset.name}/rows", params={"format": "arrow"}) as answer:
        parts = list(answer.iter_raw())
    assert len(parts) > 2 and pa.ipc.open_stream(b"".join(parts)).read_all().num_rows == 300_000
