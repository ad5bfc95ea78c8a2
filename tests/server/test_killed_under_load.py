"""Readers and writers at once get whole versions only; so they do from a server that was killed in the middle."""

from __future__ import annotations

import json
import signal
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from typing import Any

import httpx

import lakeward

ROWS = 40
READERS, WRITERS, WRITES = 8, 3, 4


def write(url: str, name: str, batch: str) -> int:
    rows = [{"id": number, "note": batch} for number in range(ROWS)]
    return httpx.post(f"{url}/api/v1/datasets/{name}/rows", json=rows, timeout=60).status_code


def batches(url: str, name: str) -> Counter[str]:
    """Return how many rows there are of each batch."""
    answer = httpx.get(f"{url}/api/v1/datasets/{name}/rows", params={"format": "ndjson"}, timeout=60).raise_for_status()
    return Counter(json.loads(line)["note"] for line in answer.text.splitlines())


def test_writes_are_whole_though_the_server_is_killed(
    workspace: lakeward.Workspace, serving_home: Callable[[], AbstractContextManager[Any]]
) -> None:
    columns = {"id": "long", "note": "string"}
    name = workspace.create_dataset("main.load.orders", columns, arm="iceberg").name
    done = threading.Event()
    with serving_home() as served, ThreadPoolExecutor(READERS + WRITERS) as pool:

        def writer(number: int) -> list[int]:
            return [write(served.url, name, f"{number}.{each}") for each in range(WRITES)]

        def reader() -> int:
            reads = 0
            while not done.is_set():
                assert set(batches(served.url, name).values()) <= {ROWS}
                reads += 1
            return reads

        writers = [pool.submit(writer, number) for number in range(WRITERS)]
        readers = [pool.submit(reader) for _ in range(READERS)]
        assert {status for each in writers for status in each.result()} == {200}
        done.set()
        assert all(each.result() > 0 for each in readers)
        told = batches(served.url, name)
        assert len(told) == WRITERS * WRITES
        # Killed as soon as one of several that write at once was answered.
        late = [pool.submit(write, served.url, name, f"late {number}") for number in range(WRITERS)]
        late[0].result()
        served.stop(signal.SIGKILL)
        answered = [not each.exception() and each.result() == 200 for each in late]
    with serving_home() as served:
        assert write(served.url, name, "after") == 200
        found = batches(served.url, name)
    assert set(found.values()) == {ROWS}
    assert {f"late {number}" for number, well in enumerate(answered) if well} | set(told) | {"after"} <= set(found)
