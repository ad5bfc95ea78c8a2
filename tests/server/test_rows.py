"""Rows go out and in over HTTP, exactly, in every form; pages go on where the one before ended."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from decimal import Decimal

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lakeward
from lakeward.server.representations import chosen

Make = Callable[..., lakeward.Dataset]
ROWS = [
    {"id": 9007199254740993, "note": 'q"\\\n\u00e9\u2028😀\x01', "amount": Decimal("0.1000")},
    {"id": -1, "note": "", "amount": None},
    {"id": 4611686018427387905, "note": None, "amount": Decimal("99999999999999.9999")},
]
ARROW = pa.schema([("id", pa.int64()), ("note", pa.string()), ("amount", pa.decimal128(18, 4))])


def by_id(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return sorted(rows, key=lambda row: row["id"])  # type: ignore[arg-type, return-value]


def exact(text: str) -> object:
    return json.loads(text, parse_float=Decimal)


def arrow_body() -> bytes:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, ARROW) as writer:
        writer.write_table(pa.Table.from_pylist(ROWS, ARROW))
    return sink.getvalue()


def parquet_body() -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(ROWS, ARROW), sink)
    return sink.getvalue()


def plain(row: dict[str, object]) -> str:
    amount = row["amount"]
    return json.dumps({**row, "amount": None}).replace('"amount": null', f'"amount": {amount or "null"}')


BODIES = {
    "application/vnd.apache.arrow.stream": arrow_body(),
    "application/vnd.apache.parquet": parquet_body(),
    "application/json": f"[{','.join(map(plain, ROWS))}]".encode(),
    "application/x-ndjson": "\n".join(map(plain, ROWS)).encode(),
}


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
@pytest.mark.parametrize("media_type", list(BODIES))
def test_t07_what_is_written_in_one_form_is_read_in_all_of_them(
    client: httpx.Client, orders: Make, arm: str, media_type: str
) -> None:
    dataset = orders(arm)
    rows = f"/datasets/{dataset.name}/rows"
    answer = client.post(rows, content=BODIES[media_type], headers={"Content-Type": media_type})
    assert (answer.status_code, answer.json()["rows_added"], answer.json()["version"]) == (200, 3, 1), answer.text
    assert by_id(dataset.to_arrow().to_pylist()) == by_id(ROWS)
    stream = client.get(rows, headers={"Accept": "application/vnd.apache.arrow.stream"})
    assert stream.headers["Lakeward-Version"] == "1"
    table = pa.ipc.open_stream(stream.content).read_all()
    assert table.schema == ARROW and by_id(table.to_pylist()) == by_id(ROWS)
    lines = client.get(rows, params={"format": "ndjson"}).text
    assert by_id([exact(line) for line in lines.splitlines() if line]) == by_id(ROWS)
    page = exact(client.get(rows).text)
    assert page == {"dataset": dataset.name, "version": 1, "rows": ROWS, "next": None}
    csv = client.get(rows, params={"format": "csv"})
    copied = orders(arm)
    again = client.post(
        f"/datasets/{copied.name}/rows", content=csv.content, headers={"Content-Type": csv.headers["content-type"]}
    )
    assert again.status_code == 200 and copied.digest() == dataset.digest()


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_before_the_first_version_there_are_columns_and_no_rows(client: httpx.Client, orders: Make, arm: str) -> None:
    empty, full = orders(arm), orders(arm)
    full.write(ROWS)
    for dataset, version in ((empty, None), (empty, 0), (full, 0)):
        asked = {} if version is None else {"version": version}
        rows = f"/datasets/{dataset.name}/rows"
        page = client.get(rows, params=asked).json()
        assert page == {"dataset": dataset.name, "version": 0, "rows": [], "next": None}
        arrow = client.get(rows, params={**asked, "format": "arrow"})
        assert arrow.headers["Lakeward-Version"] == "0"
        table = pa.ipc.open_stream(arrow.content).read_all()
        assert table.schema == ARROW and table.num_rows == 0
        assert client.get(rows, params={**asked, "format": "ndjson"}).content == b""
        assert client.get(rows, params={**asked, "format": "csv"}).text == "id,note,amount\n"
        assert client.get(f"/datasets/{dataset.name}/digest", params=asked).json()["rows"] == 0
        assert client.get(f"/datasets/{dataset.name}/changes", params={**asked, "since": 0}).content == b""


@pytest.mark.parametrize(
    ("accept", "media_type"),
    [
        ("application/json, text/csv;q=0.5", "application/json"),
        ("text/csv; q=0.1, application/x-ndjson", "application/x-ndjson"),
        ("text/csv;q=0", "application/json"),
        ("text/csv;q=none, application/x-ndjson;q=0.2", "application/x-ndjson"),
        ("image/png, */*", "application/json"),
        ("text/csv, application/x-ndjson", "text/csv"),
    ],
)
def test_what_is_wanted_most_is_sent(accept: str, media_type: str) -> None:
    found = chosen(None, accept)
    assert (found.media_type.partition(";")[0] if found else "application/json") == media_type


def test_lines_of_json_hold_a_row_each_whatever_is_in_them(client: httpx.Client, orders: Make) -> None:
    dataset = orders(id="long", document="json", tags="list<string>")
    row = {"id": 1, "document": {"a": "x\u2028y\u0085z\u2029"}, "tags": ["\u2028", None]}
    dataset.write([{**row, "document": json.dumps(row["document"])}])
    text = client.get(f"/datasets/{dataset.name}/rows", params={"format": "ndjson"}).text
    assert [json.loads(line) for line in text.splitlines()] == [row]


def test_columns_filters_versions_and_changes(client: httpx.Client, orders: Make) -> None:
    dataset = orders()
    rows = f"/datasets/{dataset.name}/rows"
    dataset.write(ROWS)
    client.post(rows, params={"mode": "upsert"}, json=[{"id": -1, "note": "new", "amount": 1}])
    assert client.get(rows, params={"column": ["note", "id"], "where": "id < 0"}).json()["rows"] == [
        {"note": "new", "id": -1}
    ]
    assert client.get(rows, params={"version": 1, "where": "id < 0"}).json()["rows"][0]["note"] == ""
    assert [row["__version"] for row in client.get(rows, params={"since": 1, "identity": True}).json()["rows"]] == [2]
    changes = client.get(f"/datasets/{dataset.name}/changes", params={"since": 1, "column": ["id", "note"]})
    assert sorted(map(json.loads, changes.text.split()), key=lambda row: row["__op"]) == [
        {"__op": "before", "id": -1, "note": ""},
        {"__op": "update", "id": -1, "note": "new"},
    ]
    assert client.get(f"/datasets/{dataset.name}/digest").json()["digest"] == str(dataset.digest())
    history = client.get(f"/datasets/{dataset.name}/history").json()["transactions"]
    assert [(each["version"], each["verb"]) for each in history] == [(2, "upsert"), (1, "append")]


@pytest.mark.parametrize("arm", ["postgres", "iceberg"])
def test_pages_hold_every_row_once_in_one_version(
    workspace: lakeward.Workspace, client: httpx.Client, orders: Make, arm: str
) -> None:
    dataset = orders(arm)
    rows = f"/datasets/{dataset.name}/rows"
    dataset.write([{"id": number, "note": "old" if number % 3 else "x", "amount": None} for number in range(2_000)])
    dataset.write([{"id": number} for number in range(500, 900)], mode="delete")
    expected = [number for number in range(2_000) if not 500 <= number < 900 and number % 3]
    found: list[int] = []
    asked = {"column": "id", "where": "note = 'old'", "limit": 150}
    page = client.get(rows, params=asked).json()
    while True:
        found += [row["id"] for row in page["rows"]]
        if page["next"] is None:
            break
        # Writes that come between two pages are in none of them.
        dataset.write([{"id": 10_000 + len(found), "note": "old", "amount": None}])
        page = client.get(rows, params={**asked, "page": page["next"]}).json()
    assert found == expected


def test_n01_odd_names_of_datasets_and_columns(workspace: lakeward.Workspace, client: httpx.Client) -> None:
    columns = {"a.b": "long", 'q"x': "string", "select": "string", "😀 é": "string"}
    name = 'main."served / odd".d%2F "" ?#ü'.replace('d%2F "" ?#ü', '"d%2F . ?#ü"')
    made = client.post("/datasets", json={"name": name, "columns": columns})
    assert made.status_code == 201, made.text
    again = client.post("/datasets", json={"name": name, "columns": columns})
    assert again.status_code == 200 and again.json() == made.json()
    url = httpx.URL(client.base_url).join(f"datasets/{_quoted(made.json()['name'])}/rows")
    row = {"a.b": 1, 'q"x': 'say "hi"', "select": None, "😀 é": "\u202e"}
    assert client.post(url, json=[row]).status_code == 200
    assert client.get(url).json()["rows"] == [row]
    assert workspace.dataset(made.json()["name"]).to_arrow().to_pylist() == [row]


def _quoted(name: str) -> str:
    return "".join(f"%{byte:02X}" for byte in name.encode())


def test_a_request_that_is_repeated_writes_once(client: httpx.Client, orders: Make) -> None:
    dataset = orders()
    rows, key = f"/datasets/{dataset.name}/rows", {"Idempotency-Key": "order 7"}
    body = [{"id": 1, "note": None, "amount": 2.5}]
    first, second = (client.post(rows, json=body, headers=key).json() for _ in range(2))
    assert (first["repeated"], second["repeated"], dataset.row_count) == (False, True, 1)
    assert {**second, "repeated": False} == first
    other = client.post(rows, json=[{"id": 2, "note": None, "amount": 2.5}], headers=key)
    assert other.status_code == 409 and dataset.row_count == 1, other.text
