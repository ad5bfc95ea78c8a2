"""A store that fails: the error names store and dataset and says what to do, in bounded time, and nothing is lost."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import CatalogError, LakewardError
from lakeward.testing.loopback_server import LoopbackServer, Reply, Request
from lakeward.wiring.doctor import examine
from support.lakes import Lake
from support.seaweedfs import READER_SECRET, SeaweedFS

ROWS = pa.table({"id": [1, 2], "note": ["a", "b"]})
COLUMNS = {"id": "long", "note": "string"}

MOST_SECONDS = 60.0


class Refusing(LoopbackServer):
    """A store that answers everything with one code of S3's."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__()
        self._reply = Reply(status, f"<Error><Code>{code}</Code><Message>no</Message></Error>".encode())

    def answer(self, request: Request) -> Reply:
        return self._reply


class Silent(LoopbackServer):
    """A store that takes requests and never answers."""

    def answer(self, request: Request) -> None:
        self.stopping.wait(MOST_SECONDS)


def closed_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


Opens = Callable[..., lakeward.Workspace]


@pytest.fixture
def opens(sql_lake: Lake, seaweed: SeaweedFS, tmp_path: Path) -> Opens:
    """Opens the workspace of the SQL catalog once more, with other properties of the store."""

    def make(warehouse: str = sql_lake.warehouse, **other: str) -> lakeward.Workspace:
        catalog = seaweed.properties() | {name.replace("_", "-").replace("s3-", "s3."): other[name] for name in other}
        return lakeward.open(tmp_path / "home", database_url=sql_lake.database_url, warehouse=warehouse, catalog=catalog)

    return make


@pytest.fixture(scope="module")
def orders(request: pytest.FixtureRequest) -> lakeward.Dataset:
    """A dataset with rows in the store."""
    lake = request.getfixturevalue("open_lake")("sql")
    dataset = lake.workspace.create_dataset("main.trouble.orders", COLUMNS, ["id"], arm="iceberg")
    dataset.write(ROWS, mode="append")
    return dataset


CASES = {
    "wrong secret": ({"s3_secret_access_key": "wrong"}, ("refuses", "s3.secret-access-key")),
    "unknown key": ({"s3_access_key_id": "nobody"}, ("refuses", "s3.access-key-id")),
    "down": ({"s3_endpoint": "closed"}, ("can't be reached", "s3.endpoint")),
    "clock": ({"s3_endpoint": "403 RequestTimeTooSkewed"}, ("clock", "clock")),
    "busy": ({"s3_endpoint": "503 SlowDown"}, ("asked too much", "repeat later")),
}


@pytest.mark.parametrize("case", CASES)
def test_a_store_that_fails(orders: lakeward.Dataset, opens: Opens, case: str) -> None:
    other, said = CASES[case]
    before = orders.version, orders.to_arrow()
    with _server(other.get("s3_endpoint", "")) as endpoint:
        properties = other | ({"s3_endpoint": endpoint} if endpoint else {})
        with opens(**properties) as workspace:
            dataset = workspace.dataset(orders.name)
            begun = time.monotonic()
            for attempt in (lambda: dataset.write(ROWS, mode="append"), dataset.to_arrow):
                with pytest.raises(CatalogError) as raised:
                    attempt()
                _assert_told(raised.value, orders.name, said if case not in ("wrong secret",) else said)
            assert time.monotonic() - begun < MOST_SECONDS
    assert (orders.version, orders.to_arrow()) == before
    assert orders.write(ROWS.slice(0, 1), mode="upsert").rows_unchanged == 1
