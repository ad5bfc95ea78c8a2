"""A server whose log can be followed, as a database that somebody else writes to."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

import lakeward
from cdc.followed import Shop
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.sources.allowed import Allowed
from lakeward.sources.change_logs.postgres import PostgresChangeLog
from lakeward.sources.connector import SourceTable
from lakeward.sources.connectors.postgres import PostgresOptions, PostgresSource
from support.databases import WORKSPACE, made_database, never_wait_for_the_disk

_numbers = itertools.count(1)


@contextmanager
def with_log(directory: Path, cache: Path) -> Iterator[EmbeddedPostgres]:
    """A server that logs changes."""
    with EmbeddedPostgres.acquire(directory, cache) as server:
        never_wait_for_the_disk(server.url)
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET wal_level = 'logical'")
    # What was set holds from the next start on.
    with EmbeddedPostgres.acquire(directory, cache) as server:
        yield server


@pytest.fixture(scope="session")
def logged_server(short_root: Path) -> Iterator[EmbeddedPostgres]:
    """A server that logs changes, and that nobody but these tests writes to."""
    with with_log(short_root / "logged", short_root / "cache") as server:
        yield server


@pytest.fixture(scope="session")
def logged(logged_server: EmbeddedPostgres) -> Iterator[psycopg.Connection]:
    """A session there that commits each statement."""
    with psycopg.connect(logged_server.url, autocommit=True) as connection:
        yield connection


@pytest.fixture(scope="session")
def connect(logged_server: EmbeddedPostgres) -> Callable[[], psycopg.Connection]:
    """Opens a session of somebody who writes there."""
    return lambda: psycopg.connect(logged_server.url)


@pytest.fixture
def name(logged: psycopg.Connection) -> Iterator[str]:
    """The name of a table that a test may make; it is dropped afterwards."""
    made = f"t{next(_numbers)}"
    yield made
    logged.execute(f"DROP TABLE IF EXISTS {made} CASCADE")


@pytest.fixture(scope="session")
def discovered(logged_server: EmbeddedPostgres) -> Callable[[str], SourceTable]:
    """Returns a table of the schema `public`, as it is now."""
    source = PostgresSource.made(PostgresOptions(url=logged_server.url), Allowed())

    def find(table: str) -> SourceTable:
        return next(each for each in source.discover() if each.full_name == f"public.{table}")

    return find


@pytest.fixture
def log(logged_server: EmbeddedPostgres, name: str) -> Iterator[PostgresChangeLog]:
    """A log of its own for this test, which is dropped afterwards."""
    made = PostgresChangeLog.made(PostgresOptions(url=logged_server.url), Allowed(), name)
    yield made
    made.drop()
    made.close()


@pytest.fixture(scope="session")
def cdc_url(postgres: EmbeddedPostgres) -> str:
    """The database of a workspace that follows."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def cdc_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its warehouse."""
    return tmp_path_factory.mktemp("cdc") / "warehouse"


@pytest.fixture(scope="session")
def reference(logged_server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> str:
    """How the workspace reaches the server that logs."""
    path = tmp_path_factory.mktemp("secrets") / "logged"
    path.write_text(logged_server.url + "\n", encoding="utf-8")
    return f"file:{path}"


@pytest.fixture(scope="session")
def ws(cdc_url: str, cdc_warehouse: Path) -> Iterator[lakeward.Workspace]:
    """The workspace. It waits for changes no longer than it must."""
    settings = cdc_warehouse.parent / "lakeward.toml"
    settings.write_text("[sources]\nfollow_seconds = 0.05\n", encoding="utf-8")
    with lakeward.open(database_url=cdc_url, warehouse=cdc_warehouse, settings_file=settings) as workspace:
        yield workspace


@pytest.fixture
def shop(ws: lakeward.Workspace, reference: str, logged: psycopg.Connection) -> Iterator[Shop]:
    """A source of its own for this test, which is followed no more afterwards."""
    made = Shop(ws, f"shop{next(_numbers)}", logged)
    ws.sources.add(made.name, "postgres", {"url": reference})
    yield made
    if made.state is not None:
        ws.sources.unfollow(made.name)
    assert made.slots() == []
