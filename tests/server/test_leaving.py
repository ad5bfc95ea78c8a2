"""Nothing stays behind: readers end with their clients, bodies with the server; and nobody waits for others in vain."""

from __future__ import annotations

import errno
import os
import socket
import threading
import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pyarrow as pa
import pytest
import sqlalchemy
from starlette.requests import Request

import lakeward
from lakeward.errors import StorageFull
from lakeward.server.bodies import received
from lakeward.server.lots import Lot
from lakeward.server.row_stream import RowStream
from server.conftest import Served, serving
from support.waiting import until

Make = Callable[..., lakeward.Dataset]


async def _nothing_more() -> dict[str, Any]:
    await anyio.sleep_forever()
    raise AssertionError


@pytest.mark.parametrize("sent_before_it_goes", [0, 1, 3])
def test_a_reader_is_closed_when_its_client_goes_away(sent_before_it_goes: int) -> None:
    closed_in: list[threading.Thread] = []

    def lots() -> Generator[Lot]:
        try:
            while True:
                yield Lot([b"part"])
        finally:
            closed_in.append(threading.current_thread())

    async def run() -> None:
        gone, sent = anyio.Event(), 0

        async def send(message: dict[str, Any]) -> None:
            nonlocal sent
            if sent == sent_before_it_goes:
                gone.set()
                await anyio.sleep_forever()
            sent += 1

        async def receive() -> dict[str, Any]:
            await gone.wait()
            return {"type": "http.disconnect"}

        stream = RowStream(lots(), "text/csv", {})
        await stream({"type": "http"}, receive, send)  # type: ignore[arg-type]
        # At once, though the answer is still there, and not in the event loop: it ends a transaction.
        assert closed_in and closed_in[0] is not threading.current_thread()

    anyio.run(run)


def test_a_reader_is_closed_though_a_part_is_being_made_when_its_client_goes_away() -> None:
    making, gone, closed = threading.Event(), threading.Event(), threading.Event()

    def lots() -> Generator[Lot]:
        try:
            yield Lot([b"first"])
            making.set()
            assert gone.wait(60)
            time.sleep(0.1)
            yield Lot([b"second"])
        finally:
            closed.set()

    async def run() -> None:
        async def send(_: dict[str, Any]) -> None:
            pass

        async def receive() -> dict[str, Any]:
            await anyio.to_thread.run_sync(making.wait)
            gone.set()
            return {"type": "http.disconnect"}

        await RowStream(lots(), "text/csv", {})({"type": "http"}, receive, send)  # type: ignore[arg-type]
        assert closed.is_set()

    anyio.run(run)


def test_the_reader_of_a_client_that_stops_in_the_middle_goes_too(
    workspace: lakeward.Workspace, client: httpx.Client, orders: Make
) -> None:
    dataset = orders()
    # More than the connection and the server hold on its way.
    count = 200_000
    dataset.write(pa.table({"id": range(count), "note": ["n" * 300] * count, "amount": pa.nulls(count)}))
    rows = f"/datasets/{dataset.name}/rows"
    with client.stream("GET", rows, params={"format": "ndjson"}) as answer:
        next(answer.iter_raw())
    for _ in range(1_000):
        if not _readers(workspace):
            break
        time.sleep(0.02)
    assert not _readers(workspace)
    assert client.get(rows, params={"limit": 1}).status_code == 200


def _readers(workspace: lakeward.Workspace) -> int:
    with workspace.database.transaction() as connection:
        activity = "SELECT state FROM pg_stat_activity WHERE query LIKE '%AS unpacked%' AND pid <> pg_backend_pid()"
        return sum(state != "idle" for (state,) in connection.execute(sqlalchemy.text(activity)))


def test_those_who_wait_to_write_hold_up_nobody_else(
    served: Served, home: Path, client: httpx.Client, orders: Make
) -> None:
    dataset, go_on, begun = orders(), threading.Event(), threading.Event()

    def slow() -> Iterator[pa.RecordBatch]:
        begun.set()
        assert go_on.wait(60)
        yield pa.RecordBatch.from_pylist([{"id": 0, "note": "", "amount": None}], _ROWS)

    def write(number: int) -> int:
        with served.client() as own:
            return own.post(
                f"/datasets/{dataset.name}/rows", json=[{"id": number, "note": "", "amount": 1}]
            ).status_code

    with ThreadPoolExecutor(60) as pool:
        first = pool.submit(dataset.write, pa.RecordBatchReader.from_batches(_ROWS, slow()))
        assert begun.wait(60)
        waiting = [pool.submit(write, number) for number in range(1, 46)]
        try:
            # As many as there are threads for everything else.
            while len(_bodies(home)) < 40:
                time.sleep(0.02)
            for _ in range(5):
                assert client.get("/datasets").status_code == 200
            assert httpx.get(f"{served.url}/healthz").status_code == 200
            assert not any(each.done() for each in waiting)
        finally:
            go_on.set()
        first.result()
        assert {each.result() for each in waiting} <= {200, 409}


def _bodies(home: Path) -> list[Path]:
    """Return the bodies that are under way, those of which something is here."""
    return [file for file in (home / "scratch").rglob("body-*") if file.stat().st_size]


_ROWS = pa.schema([("id", pa.int64()), ("note", pa.string()), ("amount", pa.decimal128(18, 4))])


def test_a_body_that_finds_no_room_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"x" * 100, "more_body": True}

    async def run() -> None:
        async with received(Request({"type": "http", "headers": []}, receive), tmp_path):
            raise AssertionError

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("lakeward.server.bodies._write", full)
    with pytest.raises(StorageFull, match="no room for the request's body"):
        anyio.run(run)
    assert list(tmp_path.iterdir()) == []


def test_killed_while_a_body_comes_it_leaves_nothing_for_long(
    home: Path, workspace: lakeward.Workspace, orders: Make
) -> None:
    dataset, killed = orders(), threading.Event()

    def body() -> Iterator[bytes]:
        yield b'{"id": 1, "note": "a", "amount": 1}\n'
        while not _bodies(home):
            time.sleep(0.02)
        running.process.kill()
        killed.set()

    with serving(home) as running, running.client() as client, pytest.raises(httpx.TransportError):
        headers = {"Content-Type": "application/x-ndjson"}
        client.post(f"/datasets/{dataset.name}/rows", content=body(), headers=headers)
    assert killed.is_set() and list((home / "scratch").rglob("body-*"))
    with lakeward.open(home):
        assert not list((home / "scratch").rglob("body-*"))
    assert dataset.version == 0


def test_a_reader_that_takes_nothing_is_broken_off(
    workspace: lakeward.Workspace, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = {"id": "long", "note": "string"}
    dataset = workspace.create_dataset("main.load.stalled", columns, arm="iceberg")
    # More than the connection holds on its way.
    dataset.write(pa.table({"id": range(50_000), "note": ["n" * 400] * 50_000}))
    monkeypatch.setenv("LAKEWARD_SERVER__STALL_SECONDS", "2")
    with serving(home) as served:
        where = urlsplit(served.url)
        with socket.create_connection((where.hostname, where.port), timeout=60) as reader:
            request = f"GET /api/v1/datasets/{dataset.name}/rows?format=arrow HTTP/1.1\r\nHost: {where.netloc}\r\n\r\n"
            reader.sendall(request.encode())
            taken = bytearray(reader.recv(1))
            assert _streams(served) == 1
            until(lambda: _streams(served) == 0)
            # Whoever reads on after that sees that something is missing: what it was not sent is gone at once, too.
            with pytest.raises(ConnectionResetError):
                while part := reader.recv(1 << 20):
                    taken += part
    assert taken.startswith(b"HTTP/1.1 200") and not taken.endswith(b"\r\n0\r\n\r\n")


def _streams(served: Served) -> float:
    lines = httpx.get(f"{served.url}/metrics", timeout=60).text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith("lakeward_http_streams_open "))
