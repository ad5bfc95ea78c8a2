"""A second real server, as a database that somebody else writes to, and a workspace that is synced from it."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.wiring.sync_plan import SyncRequest
from lakeward.wiring.syncing import TableSynced
from support.databases import WORKSPACE, made_database, never_wait_for_the_disk

SOURCE = "shop"
_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def other_server(short_root: Path) -> Iterator[EmbeddedPostgres]:
    """A server that nobody but these tests writes to: its transactions are those that they run."""
    with EmbeddedPostgres.acquire(short_root / "other", short_root / "cache") as server:
        never_wait_for_the_disk(server.url)
        yield server


@pytest.fixture(scope="session")
def connect(other_server: EmbeddedPostgres) -> Callable[[], psycopg.Connection]:
    """Opens a session of somebody who writes there."""
    return lambda: psycopg.connect(other_server.url)


@pytest.fixture(scope="session")
def shop(connect: Callable[[], psycopg.Connection]) -> Iterator[psycopg.Connection]:
    """A session there that commits each statement."""
    with connect() as connection:
        connection.autocommit = True
        yield connection


@pytest.fixture(scope="session")
def sync_url(postgres: EmbeddedPostgres) -> str:
    """The workspace's own database."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def sync_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace's warehouse."""
    return tmp_path_factory.mktemp("sync") / "warehouse"


@pytest.fixture(scope="session")
def ws(
    sync_url: str, sync_warehouse: Path, other_server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lakeward.Workspace]:
    """A workspace that knows the other server by a file."""
    reference = tmp_path_factory.mktemp("secrets") / "shop"
    reference.write_text(other_server.url + "\n", encoding="utf-8")
    with lakeward.open(database_url=sync_url, warehouse=sync_warehouse) as workspace:
        workspace.sources.add(SOURCE, "postgres", {"url": f"file:{reference}"})
        yield workspace


@pytest.fixture
def name(shop: psycopg.Connection) -> Iterator[str]:
    """The name of a table that a test may make; it is dropped afterwards."""
    made = f"t{next(_numbers)}"
    yield made
    shop.execute(f"DROP TABLE IF EXISTS {made} CASCADE")


@pytest.fixture
def sync(ws: lakeward.Workspace) -> Callable[..., TableSynced]:
    """Syncs one table."""

    def run(table: str, mode: str = "full", **how: object) -> TableSynced:
        [synced] = ws.sources.sync(SyncRequest(SOURCE, [table], mode, **how))  # type: ignore[arg-type]
        return synced

    return run


@pytest.fixture
def rows(ws: lakeward.Workspace) -> Callable[..., list[tuple[object, ...]]]:
    """Returns all rows of a synced dataset, sorted, as tuples."""

    def read(table: str, into: str = f"main.{SOURCE}") -> list[tuple[object, ...]]:
        found = ws.dataset(f"{into}.{table}").to_arrow().to_pylist()
        return sorted((tuple(row.values()) for row in found), key=lambda row: json.dumps(row, default=str))

    return read
