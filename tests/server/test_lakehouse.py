"""A platform writes, reads, adopts and moves tables by namespace over HTTP; PyIceberg sees what it wrote."""

from __future__ import annotations

import io
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pytest

import lakeward
from lakeward.control.identifiers import TableIdentifier
from lakeward.wiring.lakehouse import dataset_name
from server.conftest import Served, serving
from support.moves import catalog_of

ARROW = "application/vnd.apache.arrow.stream"
SCHEMA = pa.schema([("id", pa.int64()), ("note", pa.string()), ("day", pa.date32())])
_numbers = count(1)

Place = dict[str, Any]


@pytest.fixture
def place() -> Place:
    """Where a table of its own is, for a test."""
    return {"namespace": ["Erp", 'Émea "north"', f"team {next(_numbers)}"], "table": "Orders.2026"}


@pytest.fixture(scope="module")
def lakehouse(served: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=f"{served.url}/lakehouse", timeout=60) as opened:
        yield opened


def body(start: int, rows: int) -> bytes:
    table = pa.table({"id": range(start, start + rows), "note": ["é"] * rows, "day": [None] * rows}, SCHEMA)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, SCHEMA) as writer:
        writer.write_table(table)
    return sink.getvalue()


def ingest(
    client: httpx.Client, place: Place, content: bytes | str, named: str | None = None, kind: str = ARROW, **how: Any
) -> httpx.Response:
    headers = {"Content-Type": kind, **({"Idempotency-Key": named} if named else {})}
    return client.post("/ingest", params={**place, **how}, content=content, headers=headers)


def ids(client: httpx.Client, place: Place, **how: Any) -> list[int]:
    answer = client.get("/read", params={**place, **how})
    assert answer.status_code == 200, answer.text
    found: list[int] = pa.ipc.open_stream(answer.content).read_all()["id"].to_pylist()
    return sorted(found)


def seen(workspace: lakeward.Workspace, namespace: list[str], table: str) -> list[int]:
    """Return the ids that PyIceberg reads, with nothing of ours in between."""
    rows = catalog_of(workspace).load_table((*namespace, table)).scan().to_arrow()
    return sorted(rows["id"].to_pylist())


def test_a_table_is_made_by_the_first_rows_and_is_where_the_platform_says(
    lakehouse: httpx.Client, workspace: lakeward.Workspace, place: Place
) -> None:
    first = ingest(lakehouse, place, body(0, 3), "k1", mode="upsert", key=["id"], partition=["month(day)"])
    assert first.status_code == 200, first.text
    said = first.json()
    assert (said["created"], said["rowCount"], said["rowsAdded"], said["repeated"]) == (True, 3, 3, False)
    assert (said["namespace"], said["table"]) == (place["namespace"], place["table"])
    assert said["dataset"] == f'Erp."Émea ""north"".{place["namespace"][2]}"."Orders.2026"'
    assert seen(workspace, **place) == [0, 1, 2]
    table = catalog_of(workspace).load_table((*place["namespace"], place["table"]))
    assert str(table.current_snapshot().snapshot_id) == said["snapshotId"]  # type: ignore[union-attr]
    assert [field.name for field in table.spec().fields] == ["day_month"]
    # Repeated: the same commit, and nothing is written.
    again = ingest(lakehouse, place, body(0, 3), "k1", mode="upsert", key=["id"]).json()
    assert again == {**said, "repeated": True}
    second = ingest(lakehouse, place, body(2, 2), mode="upsert").json()
    assert (second["created"], second["rowsAdded"], second["rowsUnchanged"], second["rowCount"]) == (False, 1, 1, 4)
    assert int(second["transactionId"]) > int(said["transactionId"]) and second["committedAt"] > said["committedAt"]
    idle = ingest(lakehouse, place, body(2, 2), mode="upsert").json()
    assert (idle["committed"], idle["transactionId"]) == (False, second["transactionId"])
    assert ids(lakehouse, place) == seen(workspace, **place) == [0, 1, 2, 3]
    # Earlier versions, by snapshot or version; what came since; and a filter.
    assert ids(lakehouse, place, snapshot=said["snapshotId"]) == ids(lakehouse, place, version=1) == [0, 1, 2]
    assert ids(lakehouse, place, since=1, column=["id"]) == [3]
    assert ids(lakehouse, place, where="id > 1", column=["id"]) == [2, 3]
    fresh = lakehouse.get("/freshness", params=place).json()
    assert (fresh["version"], fresh["committedAt"], fresh["rowCount"]) == (2, second["committedAt"], 4)
    assert (fresh["snapshotId"], fresh["behindVersions"], fresh["arm"]) == (second["snapshotId"], 0, "iceberg")
    none = lakehouse.get("/freshness", params={**place, "arm": "postgres"}).json()
    assert (none["version"], none["newestVersion"], none["behindVersions"]) == (None, 2, 2)
    # The levels may come in one text, as in the Iceberg REST catalog's paths.
    joined = {**place, "namespace": "\x1f".join(place["namespace"])}
    assert ids(lakehouse, joined) == [0, 1, 2, 3]
    assert workspace.status()[0].at_home


def test_json_with_declared_types(lakehouse: httpx.Client, workspace: lakeward.Workspace) -> None:
    place = {"namespace": ["flat"], "table": "t"}
    types = '{"id": "long", "amount": "decimal(9,2)"}'
    answer = ingest(lakehouse, place, '[{"id": 1, "amount": 2.50}]', kind="application/json", columns=types)
    assert answer.json()["dataset"] == "main.flat.t", answer.text
    assert ingest(lakehouse, place, '{"id": 2, "amount": null}\n', kind="application/x-ndjson").json()["rowCount"] == 2
    assert str(catalog_of(workspace).load_table(("flat", "t")).schema().find_type("amount")) == "decimal(9, 2)"
    other = ingest(lakehouse, place, "[]", kind="application/json", columns=types.replace("long", "string"))
    assert (other.status_code, other.json()["title"]) == (409, "NameTaken")
    lines = lakehouse.get("/read", params={**place, "format": "ndjson", "where": "id = 1"}).text
    assert lines == '{"id":1,"amount":2.50}\n'


def test_any_dataset_is_found_by_the_name_of_its_table(
    lakehouse: httpx.Client, workspace: lakeward.Workspace, orders: Any
) -> None:
    dataset = orders("postgres", id="long", note="string")
    dataset.write([{"id": 7, "note": "rows in Postgres"}])
    slugs = dataset.record.slugs
    place = {"namespace": list(slugs[:2]), "table": slugs[2]}
    assert ids(lakehouse, place) == [7]
    answer = ingest(lakehouse, place, '[{"id": 8, "note": null}]', kind="application/json").json()
    assert (answer["rowCount"], answer["snapshotId"], answer["created"]) == (2, None, False)


@pytest.mark.parametrize(
    ("how", "status", "title"),
    [
        ({"mode": "upsert"}, 400, "SchemaError"),
        ({"mode": "delete"}, 404, "UnknownObject"),
        ({"mode": "none"}, 404, "UnknownObject"),
        ({"create": "false"}, 404, "UnknownObject"),
        ({"columns": "[]"}, 400, "UsageError"),
        ({"namespace": ["a", ""]}, 400, "UsageError"),
        ({"namespace": ["a", "b.c"]}, 400, "UsageError"),
        ({"namespace": ["a\x00b"]}, 400, "InvalidName"),
        ({"namespace": ["pad "]}, 400, "InvalidName"),
        ({"key": ["other"]}, 400, "SchemaError"),
        ({"what": "else"}, 400, "UsageError"),
    ],
)
def test_what_can_t_be_meant_makes_nothing(
    lakehouse: httpx.Client, workspace: lakeward.Workspace, place: Place, how: Place, status: int, title: str
) -> None:
    before = len(workspace.datasets())
    answer = ingest(lakehouse, {**place, **how}, body(0, 1))
    assert (answer.status_code, answer.json()["title"]) == (status, title), answer.text
    assert len(workspace.datasets()) == before


def test_two_first_writes_at_once_make_one_table(
    lakehouse: httpx.Client, workspace: lakeward.Workspace, place: Place
) -> None:
    gate = threading.Barrier(4)

    def write(number: int) -> dict[str, Any]:
        gate.wait()
        answer = ingest(lakehouse, place, body(number, 1), f"k{number}")
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(write, range(4)))
    assert sorted(each["created"] for each in said) == [False, False, False, True]
    assert seen(workspace, **place) == ids(lakehouse, place) == [0, 1, 2, 3]


def test_a_table_of_another_engine_is_registered_and_then_written_to(
    lakehouse: httpx.Client, workspace: lakeward.Workspace, home: Path, place: Place
) -> None:
    catalog = catalog_of(workspace)
    for depth in (1, 2, 3):
        catalog.create_namespace_if_not_exists(tuple(place["namespace"][:depth]))
    location = (home / "warehouse" / "theirs").as_uri()
    table = catalog.create_table((*place["namespace"], place["table"]), SCHEMA, location=location)
    table.append(pa.table({"id": [1, 2], "note": ["a", None], "day": [None, None]}, SCHEMA))
    refused = ingest(lakehouse, place, body(3, 1))
    assert (refused.status_code, refused.json()["title"]) == (409, "ConflictError"), refused.text
    assert lakehouse.get("/read", params=place).status_code == 404
    wanted = {**place, "primaryKey": ["id"]}
    dry = lakehouse.post("/register", json={**wanted, "dryRun": True}).json()
    assert dry["actions"] and dry["transactionId"] is None
    said = lakehouse.post("/register", json=wanted)
    assert said.status_code == 200, said.text
    assert (said.json()["rowCount"], said.json()["created"], said.json()["repeated"]) == (2, True, False)
    assert lakehouse.post("/register", json=wanted).json() == {**said.json(), "repeated": True, "actions": []}
    assert ingest(lakehouse, place, body(2, 2), mode="upsert").json()["rowCount"] == 3
    assert ids(lakehouse, place) == seen(workspace, **place) == [1, 2, 3]
    missing = lakehouse.post("/register", json={"namespace": ["no"], "table": "where"})
    assert (missing.status_code, missing.json()["title"]) == (404, "UnknownObject")


def test_a_table_is_moved_and_still_found_by_its_old_name(
    lakehouse: httpx.Client, workspace: lakeward.Workspace, place: Place
) -> None:
    ingest(lakehouse, place, body(0, 2))
    to = {"namespace": ["archive", f"n{next(_numbers)}"], "table": "orders"}
    order = {**place, "to": to}
    dry = lakehouse.post("/move-namespace", json={**order, "dryRun": True}).json()
    assert (dry["moved"], len(dry["actions"])) == (False, 1)
    said = lakehouse.post("/move-namespace", json=order)
    assert said.status_code == 200, said.text
    assert {**said.json(), "actions": []} == {
        **to,
        "dataset": said.json()["dataset"],
        "moved": True,
        "way": said.json()["way"],
        "dryRun": False,
        "actions": [],
    }
    again = lakehouse.post("/move-namespace", json=order)
    assert again.status_code == 200 and again.json()["moved"] is False, again.text
    assert seen(workspace, **to) == ids(lakehouse, place) == ids(lakehouse, to) == [0, 1]
    assert not catalog_of(workspace).table_exists((*place["namespace"], place["table"]))
    written = ingest(lakehouse, place, body(2, 1)).json()
    assert (written["namespace"], written["rowCount"]) == (to["namespace"], 3)
    # It belongs there: a sweep leaves it, and nobody else may have the name.
    dataset = said.json()["dataset"]
    assert [each.outcome for each in workspace.moves.apply(dataset)] == ["done"]
    other = {"namespace": ["another"], "table": f"t{next(_numbers)}"}
    ingest(lakehouse, other, body(0, 1))
    taken = lakehouse.post("/move-namespace", json={**other, "to": to})
    assert (taken.status_code, taken.json()["title"]) == (409, "ConflictError")
    back = lakehouse.post("/move-namespace", json={**to, "undo": True}).json()
    assert (back["namespace"], back["moved"]) == (place["namespace"], True)
    assert seen(workspace, **place) == [0, 1, 2]


def test_a_server_that_is_killed_in_the_middle_of_an_ingest_loses_and_doubles_nothing(
    workspace: lakeward.Workspace, home: Path, place: Place
) -> None:
    rows, dataset = 150_000, str(dataset_name(TableIdentifier(tuple(place["namespace"]), place["table"])))
    with serving(home) as running, httpx.Client(base_url=f"{running.url}/lakehouse", timeout=60) as client:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(ingest, client, place, body(0, rows), "once", key=["id"])
            while not (found := workspace.tree.find(dataset)) or not workspace.dataset(dataset).history():
                assert not asked.done(), asked.result().text
            running.stop(signal.SIGKILL)
            with pytest.raises(httpx.TransportError):
                asked.result()
        assert found.head_version == 0
    with serving(home) as running, httpx.Client(base_url=f"{running.url}/lakehouse", timeout=60) as client:
        said = ingest(client, place, body(0, rows), "once").json()
        assert (said["rowCount"], said["rowsAdded"], said["created"]) == (rows, rows, True)
        assert ingest(client, place, body(0, rows), "once").json() == {**said, "repeated": True}
        assert len(seen(workspace, **place)) == rows
