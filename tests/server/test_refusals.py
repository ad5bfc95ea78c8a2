"""What is refused says so by status and in words, and changes nothing; what comes from elsewhere is not let in."""

from __future__ import annotations

import gzip
import http.client
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import lakeward
from server.conftest import Served, serving
from support.commands import process

Make = Callable[..., lakeward.Dataset]
PACKED = gzip.compress(b"id,note,amount\n7,packed,1\n")
GZIP = {"Content-Type": "text/csv", "Content-Encoding": "gzip"}
TWO_KEYS = [("Content-Type", "application/json"), ("Idempotency-Key", "a"), ("Idempotency-Key", "b")]


def test_errors_are_problems_with_a_way_out(client: httpx.Client, orders: Make) -> None:
    dataset = orders()
    dataset.write([{"id": 1, "note": "a", "amount": 1}])
    rows = f"/datasets/{dataset.name}/rows"
    json = {"Content-Type": "application/json"}
    asked: list[tuple[int, str, Callable[[], httpx.Response]]] = [
        (404, "did you mean", lambda: client.get(f"/datasets/{dataset.name}x")),
        (404, "version 7", lambda: client.get(rows, params={"version": 7})),
        (400, "not one SQL predicate", lambda: client.get(rows, params={"where": "1) or (1"})),
        (400, "read_text", lambda: client.get(rows, params={"where": "read_text('/etc/passwd') = ''"})),
        (400, "limit", lambda: client.get(rows, params={"limit": 0})),
        (400, "'zip' is no page", lambda: client.get(rows, params={"page": "zip"})),
        (400, "unknown format 'zip'", lambda: client.get(rows, params={"format": "zip"})),
        (400, "column", lambda: client.get(rows, params={"column": "nope"})),
        (400, "text/plain", lambda: client.post(rows, content=b"x", headers={"Content-Type": "text/plain"})),
        (400, "mode", lambda: client.post(rows, params={"mode": "merge"}, json=[])),
        (400, "unknown parameter 'wher'", lambda: client.get(rows, params={"wher": "id = 7"})),
        (400, "where comes more than once", lambda: client.get(rows, params={"where": ["id = 7", "true"]})),
        (400, "version", lambda: client.get(rows, params={"version": 2**63})),
        (400, "is no page", lambda: client.get(rows, params={"page": f"1.{2**63}"})),
        (400, "is no page", lambda: client.get(rows, params={"page": "1." + "9" * 5000})),
        (400, "nested too deeply", lambda: client.get(rows, params={"where": f"{'(' * 5000}true{')' * 5000}"})),
        (400, "Conversion", lambda: client.get(rows, params={"where": "note::int = 1", "format": "arrow"})),
        (400, "'gzip' is not unpacked", lambda: client.post(rows, content=PACKED, headers=GZIP)),
        (400, "idempotency-key comes more", lambda: client.post(rows, content=b"[]", headers=TWO_KEYS)),
        (413, "1,048,576 bytes", lambda: client.post("/datasets", content=iter([b" " * (1 << 20), b"{}"]))),
        (400, "Idempotency", lambda: client.post(rows, json=[], headers={"Idempotency-Key": "k" * 201})),
        (422, "line 2, column 'id'", lambda: client.post(rows, content=b'[\n{"id": "x"}]', headers=json)),
        (422, "JSON", lambda: client.post(rows, content=b'[{"id": 1', headers=json)),
        (422, "primary key", lambda: client.post(rows, params={"mode": "upsert"}, json=[{"id": None, "note": "b"}])),
        (422, "more than once", lambda: client.post(rows, params={"mode": "upsert"}, json=[{"id": 2}, {"id": 2}])),
        (400, "main.served", lambda: client.post("/datasets", json={"name": "main.served", "columns": {"a": "int"}})),
        (409, dataset.name, lambda: client.post("/datasets", json={"name": dataset.name, "columns": {"a": "int"}})),
        (400, "extra", lambda: client.post("/datasets", json={"name": "a.b.c", "columns": {"a": "int"}, "x": 1})),
        (404, "Not Found", lambda: client.get("/nothing")),
        (405, "Not Allowed", lambda: client.delete(rows)),
    ]
    for status, told, ask in asked:
        answer = ask()
        problem = answer.json()
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json"), answer.text
        assert told.lower() in answer.text.lower() and problem["status"] == status, (told, answer.text)
        assert "/tmp" not in answer.text and "Traceback" not in answer.text
    assert (dataset.version, dataset.row_count) == (1, 1)


def test_s02_no_page_and_no_other_name_gets_in(served: Served, client: httpx.Client, orders: Make) -> None:
    rows = f"/datasets/{orders().name}/rows"
    for status, headers in (
        (421, {"Host": "evil.example"}),
        (421, {"Host": "127.0.0.1.evil.example:80"}),
        (403, {"Origin": "https://evil.example"}),
        (403, {"Origin": "null"}),
        (403, {"Origin": "http://127.0.0.1:1"}),
        (403, {"Origin": "http://["}),
        (403, {"Sec-Fetch-Site": "cross-site"}),
        (403, {"Sec-Fetch-Site": "same-site"}),
    ):
        assert client.get("/datasets", headers=headers).status_code == status
        assert client.post(rows, json=[{"id": 1}], headers=headers).status_code == status
    assert client.get(rows).json()["rows"] == []
    assert client.get("/datasets", headers={"Origin": served.url}).status_code == 200
    assert "access-control-allow-origin" not in client.get("/datasets", headers={"Origin": served.url}).headers


def test_a_body_that_is_too_large_is_refused_however_it_comes(
    home: Path, workspace: lakeward.Workspace, orders: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARD_SERVER__BODY_LIMIT_BYTES", "1000")
    dataset = orders()

    def chunks() -> Iterator[bytes]:
        for _ in range(20):
            yield b'{"id": 1, "note": "a", "amount": 1}\n' * 10

    bodies: list[Any] = [b"".join(chunks()), chunks()]
    with serving(home) as limited, limited.client() as client:
        for body in bodies:
            headers = {"Content-Type": "application/x-ndjson"}
            answer = client.post(f"/datasets/{dataset.name}/rows", content=body, headers=headers)
            assert answer.status_code == 413 and "1,000 bytes" in answer.json()["detail"]
    assert dataset.version == 0


def test_a_body_that_breaks_off_is_not_written(served: Served, orders: Make, client: httpx.Client) -> None:
    dataset = orders()
    place = urlsplit(served.url)
    connection = http.client.HTTPConnection(place.hostname or "", place.port)
    connection.putrequest("POST", f"/api/v1/datasets/{dataset.name}/rows")
    connection.putheader("Content-Type", "application/x-ndjson")
    connection.putheader("Content-Length", "10000")
    connection.endheaders(b'{"id": 1, "note": "a", "amount": 1}\n')
    connection.close()
    assert client.post(f"/datasets/{dataset.name}/rows", json=[{"id": 2, "note": "b", "amount": 1}]).status_code == 200
    assert dataset.to_arrow()["id"].to_pylist() == [2]


def test_only_this_machine_is_listened_on_without_logins(
    home: Path, workspace: lakeward.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKEWARD_SERVER__AUTH", "off")
    ended = process("serve", "--home", home, "--host", "0.0.0.0", "--port", "0")
    _, errors = ended.communicate(timeout=60)
    assert ended.returncode == 2 and "not at 0.0.0.0" in errors and "Next:" in errors


def test_a_port_that_is_taken_is_named(served: Served, home: Path) -> None:
    port = str(urlsplit(served.url).port)
    ended = process("serve", "--home", home, "--port", port)
    _, errors = ended.communicate(timeout=60)
    assert ended.returncode == 2 and f"127.0.0.1:{port} can't be listened on" in errors
