"""The REST catalog that we ship serves PyIceberg's own client in full, and loses no commit."""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NamespaceAlreadyExistsError,
    NamespaceNotEmptyError,
    NoSuchNamespaceError,
    NoSuchTableError,
    RESTError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from lakeward.testing.rest_catalog import RestCatalogServer

ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "kind": ["a", "b"]})
SCHEMA = Schema(NestedField(1, "id", LongType(), required=False), NestedField(2, "kind", StringType(), required=False))
NAME = ("main", "sales", "orders")


@pytest.fixture(params=["sqlite", "postgres"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[RestCatalogServer]:
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'catalog.db'}"
    else:
        new_database: Callable[[], str] = request.getfixturevalue("new_database")
        url = new_database()
    with RestCatalogServer(url, tmp_path / "warehouse") as running:
        yield running


@pytest.fixture
def catalog(server: RestCatalogServer) -> Catalog:
    made = load_catalog("mine", type="rest", uri=server.url)
    made.create_namespace("main")
    made.create_namespace(("main", "sales"), {"owner": "ada"})
    return made


def test_namespaces(catalog: Catalog) -> None:
    assert catalog.list_namespaces() == [("main",)]
    assert catalog.list_namespaces("main") == [("main", "sales")]
    assert catalog.load_namespace_properties(("main", "sales"))["owner"] == "ada"
    done = catalog.update_namespace_properties(("main", "sales"), {"owner", "none"}, {"level": "2"})
    assert (done.removed, done.updated, done.missing) == (["owner"], ["level"], ["none"])
    assert catalog.namespace_exists(("main", "sales")) and not catalog.namespace_exists(("main", "other"))
    with pytest.raises(NamespaceAlreadyExistsError):
        catalog.create_namespace("main")
    with pytest.raises(NamespaceNotEmptyError):
        catalog.drop_namespace("main")
    with pytest.raises(NoSuchNamespaceError):
        catalog.load_namespace_properties("nowhere")
    with pytest.raises(BadRequestError, match="dot"):
        catalog.create_namespace(("a.b",))
    catalog.drop_namespace(("main", "sales"))
    assert catalog.list_namespaces("main") == []


def test_a_table_from_birth_to_purge(catalog: Catalog, tmp_path: Path) -> None:
    table = catalog.create_table(NAME, SCHEMA, properties={"format-version": "2"})
    table.append(ROWS)
    table.append(ROWS)
    with table.transaction() as transaction:
        transaction.set_properties({"k": "v"})
        transaction.update_schema().add_column("note", StringType()).commit()
    found = catalog.load_table(NAME)
    assert found.properties["k"] == "v" and found.schema().column_names == ["id", "kind", "note"]
    assert found.scan().to_arrow().num_rows == 4
    assert catalog.list_tables(("main", "sales")) == [NAME] and catalog.table_exists(NAME)
    with pytest.raises(TableAlreadyExistsError):
        catalog.create_table(NAME, SCHEMA)
    with pytest.raises(NoSuchNamespaceError):
        catalog.create_table(("nowhere", "t"), SCHEMA)

    moved = catalog.rename_table(NAME, ("main", "orders"))
    assert not catalog.table_exists(NAME) and moved.scan().to_arrow().num_rows == 4
    pointer = moved.metadata_location
    catalog.drop_table(("main", "orders"))
    with pytest.raises(NoSuchTableError):
        catalog.load_table(("main", "orders"))
    again = catalog.register_table(NAME, pointer)
    assert again.scan().to_arrow().num_rows == 4
    catalog.purge_table(NAME)
    assert not Path(pointer.removeprefix("file://")).exists()


def test_a_staged_table_comes_to_be_with_its_first_commit(catalog: Catalog) -> None:
    spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "kind"))
    staged = catalog.create_table_transaction(NAME, SCHEMA, partition_spec=spec)
    assert not catalog.table_exists(NAME)
    with staged as transaction:
        transaction.append(ROWS)
    made = catalog.load_table(NAME)
    assert made.scan("kind = 'b'").to_arrow()["id"].to_pylist() == [2]
    assert [field.name for field in made.spec().fields] == ["kind"]


def test_two_staged_creations_of_one_name_make_one_table(catalog: Catalog) -> None:
    first, second = (catalog.create_table_transaction(NAME, SCHEMA) for _ in range(2))
    first.commit_transaction()
    with pytest.raises(CommitFailedException):
        second.commit_transaction()


def test_a_commit_whose_requirement_fails_is_a_conflict_and_changes_nothing(catalog: Catalog) -> None:
    table = catalog.create_table(NAME, SCHEMA)
    table.append(ROWS)
    stale = catalog.load_table(NAME)
    table.append(ROWS)
    before = catalog.load_table(NAME).metadata_location
    with pytest.raises(CommitFailedException, match="main has changed"):
        # Past PyIceberg's own retry, which loads the table anew.
        catalog.commit_table(stale, *reversed(stale.transaction()._set_ref_snapshot(1, "main", "branch")))
    assert catalog.load_table(NAME).metadata_location == before
    catalog.drop_table(NAME)
    # PyIceberg has no name of its own for a commit to a table that is gone.
    with pytest.raises(RESTError, match="NoSuchTableException"):
        stale.append(ROWS)


def test_commits_at_once_are_applied_one_after_the_other(server: RestCatalogServer, catalog: Catalog) -> None:
    catalog.create_table(NAME, SCHEMA, properties={"commit.retry.num-retries": "50", "commit.retry.min-wait-ms": "1"})
    failures: list[Exception] = []

    def append() -> None:
        table = load_catalog("theirs", type="rest", uri=server.url).load_table(NAME)
        for _ in range(4):
            try:
                table.append(ROWS)
            except CommitFailedException as error:
                failures.append(error)

    threads = [threading.Thread(target=append) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = catalog.load_table(NAME)
    assert table.scan().to_arrow().num_rows == 2 * (16 - len(failures))
    assert len(table.metadata.snapshots) == 16 - len(failures) and len(failures) < 16


def _raw(method: str, url: str, body: Any = None) -> tuple[int, Any]:
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode(), method=method)
    try:
        with urllib.request.urlopen(request) as response:
            text = response.read()
            return response.status, json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        return error.code, json.loads(error.read() or b"null")


def test_the_wire_is_that_of_the_specification(server: RestCatalogServer, catalog: Catalog) -> None:
    base = f"{server.url}/v1/namespaces"
    assert _raw("GET", f"{base}?parent=main") == (200, {"namespaces": [["main", "sales"]]})
    assert _raw("GET", f"{base}/main%1Fsales")[1]["namespace"] == ["main", "sales"]
    status, made = _raw(
        "POST", f"{base}/main%1Fsales/tables", {"name": "t", "schema": json.loads(SCHEMA.model_dump_json())}
    )
    assert status == 200 and made["metadata"]["location"].startswith("file://")
    assert _raw("HEAD", f"{base}/main%1Fsales/tables/t") == (204, None)
    assert _raw("POST", f"{base}/main%1Fsales/tables/t", {"requirements": [], "updates": []})[0] == 200
    status, refused = _raw(
        "POST",
        f"{base}/main%1Fsales/tables/t",
        {"requirements": [{"type": "assert-create"}], "updates": []},
    )
    assert status == 409 and refused["error"]["type"] == "CommitFailedException" and refused["error"]["code"] == 409
    assert _raw("POST", f"{base}/main%1Fsales/tables/t", {"requirements": [{"type": "odd"}]})[0] == 400
    assert _raw("POST", f"{base}/main%1Fsales/tables/none", {"requirements": [], "updates": []})[0] == 404
    assert _raw("POST", f"{base}/main%1Fsales/tables/t/metrics", {})[0] == 204
    assert _raw("GET", f"{server.url}/v1/nothing")[0] == 404


def test_nothing_is_left_running(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    with RestCatalogServer(f"sqlite:///{tmp_path / 'c.db'}", tmp_path) as server:
        catalog = load_catalog("mine", type="rest", uri=server.url)
        catalog.list_namespaces()  # its connection stays open
        assert set(threading.enumerate()) - before
    assert set(threading.enumerate()) <= before
