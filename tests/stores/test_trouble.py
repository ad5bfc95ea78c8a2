"""A store that fails: the error names store and dataset and says what to do, in bounded time, and nothing is lost."""

from __future__ import annotations

import json
import socket
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import psycopg
import pyarrow as pa
import pytest
from pyarrow import fs

import lakeward
from lakeward.errors import CatalogError, LakewardError
from lakeward.wiring.doctor import examine
from support.lakes import Lake
from support.seaweedfs import BUCKET, READER_SECRET, SECRET, SeaweedFS

ROWS = pa.table({"id": [1, 2], "note": ["a", "b"]})
COLUMNS = {"id": "long", "note": "string"}

MOST_SECONDS = 60.0


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


Opens = Callable[..., lakeward.Workspace]


@pytest.fixture
def opens(sql_lake: Lake, seaweed: SeaweedFS, tmp_path: Path) -> Opens:
    """Opens the workspace of the SQL catalog once more, with another warehouse or other keys."""

    def make(other: dict[str, str], warehouse: str = sql_lake.warehouse) -> lakeward.Workspace:
        place = {"database_url": sql_lake.database_url, "warehouse": warehouse}
        return lakeward.open(tmp_path / "home", **place, catalog=seaweed.properties() | other)

    return make


@pytest.fixture
def orders(sql_lake: Lake) -> lakeward.Dataset:
    """A dataset with rows in the store."""
    return orders_in(sql_lake.workspace)


def orders_in(workspace: lakeward.Workspace, name: str = "main.trouble.orders") -> lakeward.Dataset:
    if name in [each.name for each in workspace.datasets()]:
        return workspace.dataset(name)
    dataset = workspace.create_dataset(name, COLUMNS, ["id"], arm="iceberg")
    dataset.write(ROWS, mode="append")
    return dataset


CASES = {
    "wrong secret": ({"s3.secret-access-key": "wrong"}, "refuses"),
    "unknown key": ({"s3.access-key-id": "nobody"}, "refuses"),
    "down": ({"s3.endpoint": closed_port()}, "can't be reached (NETWORK_CONNECTION, 7, Could not connect to server)"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_store_that_fails_costs_nothing(orders: lakeward.Dataset, opens: Opens, case: str) -> None:
    other, said = CASES[case]
    before = orders.version, orders.to_arrow()
    begun = time.monotonic()
    with opens(other) as workspace:
        dataset = workspace.dataset(orders.name)
        for attempt in (lambda: dataset.write(ROWS, mode="append"), dataset.to_arrow):
            with pytest.raises(CatalogError) as raised:
                attempt()
            assert raised.value.message.startswith(f"dataset {orders.name}: the store of bucket {BUCKET} {said}")
            assert raised.value.safe and raised.value.next_step
        place = workspace.storage.routing.arm("iceberg").receiver().place()
        assert place is not None and not place.ok and place.next_step
    assert time.monotonic() - begun < MOST_SECONDS
    assert (orders.version, orders.to_arrow()) == before
    assert orders.write(ROWS.slice(0, 1), mode="upsert").rows_unchanged == 1


def test_a_key_that_may_only_read_reads_and_does_not_write(orders: lakeward.Dataset, opens: Opens) -> None:
    with opens({"s3.access-key-id": "reader", "s3.secret-access-key": READER_SECRET}) as workspace:
        dataset = workspace.dataset(orders.name)
        assert dataset.to_arrow().equals(orders.to_arrow())
        with pytest.raises(CatalogError, match=f"the store of bucket {BUCKET} refuses"):
            dataset.write(ROWS, mode="append")
    assert orders.to_arrow().num_rows == 2


def test_a_bucket_that_is_not_there(opens: Opens) -> None:
    with opens({}, "s3://nowhere/house") as workspace:
        dataset = workspace.create_dataset("main.trouble.nowhere", COLUMNS, ["id"], arm="iceberg")
        with pytest.raises(CatalogError, match=r"trouble\.nowhere: the store of bucket nowhere has no such bucket"):
            dataset.write(ROWS, mode="append")
        assert dataset.version == 0


def test_a_file_that_is_gone_is_named_by_a_read_and_by_a_write(sql_lake: Lake, seaweed: SeaweedFS) -> None:
    """What DuckDB meets while it streams comes out as the store's failure, not as DuckDB's."""
    dataset = orders_in(sql_lake.workspace, "main.trouble.gone")
    place = dataset.locate()["iceberg"]["location"].partition("://")[2]
    files = seaweed.files()
    (data,) = [each.path for each in files.get_file_info(fs.FileSelector(f"{place}/data")) if each.is_file]
    files.delete_file(data)
    for attempt in (dataset.to_arrow, lambda: dataset.write(ROWS, mode="upsert"), dataset.digest):
        with pytest.raises(CatalogError, match=r"dataset main\.trouble\.gone: the warehouse can't be used") as raised:
            attempt()
        assert data in raised.value.message


def test_s02_keys_appear_nowhere(
    opens: Opens, sql_lake: Lake, orders: lakeward.Dataset, seaweed: SeaweedFS, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither the secret, nor a part of it, nor as it is written in an address."""
    texts: list[str] = []
    caplog.set_level("DEBUG")
    catalog = seaweed.properties() | {"s3.session-token": f"token-{SECRET}", "s3.endpoint": closed_port()}
    with opens(catalog) as workspace:
        for attempt in (lambda: workspace.dataset(orders.name).write(ROWS, mode="append"), orders.to_arrow):
            try:
                attempt()
            except LakewardError as error:
                texts += [str(error), repr(error), json.dumps(error.to_json()), *traceback.format_exception(error)]
        loaded = workspace.settings
        texts += [repr(workspace), repr(loaded), loaded.values.model_dump_json(), str(workspace.storage.routing.arms)]
        texts += [f"{name} {value}" for name, value in vars(workspace.storage.routing.arm("iceberg")).items()]
    found = examine({"database_url": sql_lake.database_url, "warehouse": sql_lake.warehouse, "catalog": catalog})
    texts.append(json.dumps(found.to_json()))
    texts += _everything_in_postgres(sql_lake.database_url)
    files = seaweed.files()
    texts += [
        files.open_input_file(each.path).read().decode(errors="replace")
        for each in files.get_file_info(fs.FileSelector(BUCKET, recursive=True))
        if each.is_file
    ]
    texts += [record.getMessage() for record in caplog.records]
    assert len(texts) > 50 and any("trouble" in text for text in texts)
    for shown in {SECRET, quote(SECRET, safe=""), quote_plus(SECRET), SECRET[:10], SECRET[-10:], SECRET[4:14]}:
        assert not [text for text in texts if shown in text]


def _everything_in_postgres(url: str) -> list[str]:
    with psycopg.connect(url) as connection:
        tables = connection.execute(
            "SELECT quote_ident(schemaname) || '.' || quote_ident(tablename) FROM pg_tables "
            "WHERE schemaname NOT IN ('pg_catalog', 'information_schema')"
        ).fetchall()
        return [
            str(row)
            for (table,) in tables
            for row in connection.execute(f"SELECT t::text FROM {table} AS t").fetchall()
        ]
