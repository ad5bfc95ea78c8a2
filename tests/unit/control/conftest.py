"""A migrated database, its tree and ledger, and a server of Debian's where there is one."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lakeward.clock import SystemClock
from lakeward.control.db import Database
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.ledger import Ledger
from lakeward.control.records import OpenTransaction
from lakeward.control.schema import migrate
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.types.schema import Schema
from support.ledger import intent_on, one_row

SCHEMA = Schema.declare({"id": "long"})

DEBIAN = min((path for path in Path("/usr/lib/postgresql").glob("*/bin") if path.parent.name >= "15"), default=None)


@pytest.fixture(scope="session", params=["packaged", "debian"] if DEBIAN else ["packaged"])
def any_server(request: pytest.FixtureRequest, short_root: Path, postgres: EmbeddedPostgres) -> Iterator[str]:
    """The URL of each kind of server in turn: the packaged one, and Debian's, which knows other collations."""
    if DEBIAN is None:
        warnings.warn("no PostgreSQL 15 or newer in /usr/lib/postgresql: Debian's is not tested", stacklevel=1)
    if request.param == "packaged":
        yield postgres.url
        return
    with EmbeddedPostgres.acquire(short_root / "debian", short_root / "cache", binaries=DEBIAN) as server:
        yield server.url


@pytest.fixture(scope="session")
def migrated() -> Callable[[str], str]:
    """Makes migrated databases on a server, by copying the first: faster than migrating every one."""
    servers: set[str] = set()

    def make(server_url: str) -> str:
        template, name = "migrated", f"test_{random.SystemRandom().randrange(2**48):012x}"
        with psycopg.connect(server_url, autocommit=True) as connection:
            if server_url not in servers:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(template)))
                with Database(server_url.replace("/lakeward?", f"/{template}?", 1)) as database:
                    migrate(database)
                servers.add(server_url)
            copy = sql.SQL("CREATE DATABASE {} TEMPLATE {}")
            connection.execute(copy.format(sql.Identifier(name), sql.Identifier(template)))
        return server_url.replace("/lakeward?", f"/{name}?", 1)

    return make


@pytest.fixture
def any_database(any_server: str, migrated: Callable[[str], str]) -> Iterator[Database]:
    """A migrated database on each kind of server."""
    with Database(migrated(any_server)) as database:
        yield database


@pytest.fixture
def database(postgres: EmbeddedPostgres, migrated: Callable[[str], str]) -> Iterator[Database]:
    """A migrated database."""
    with Database(migrated(postgres.url)) as database:
        yield database


@pytest.fixture
def tree(database: Database) -> Tree:
    """The tree of names in `database`."""
    return Tree(database)


@pytest.fixture
def ledger(database: Database) -> Ledger:
    """The ledger in `database`."""
    return Ledger(database, SystemClock())


@pytest.fixture
def dataset(tree: Tree) -> DatasetRecord:
    """A dataset on the Postgres arm, without rows."""
    return tree.create_dataset("main.sales.orders", SCHEMA)


@pytest.fixture
def write(ledger: Ledger) -> Callable[[DatasetRecord], OpenTransaction]:
    """Commits one row to a dataset, and returns the transaction."""

    def commit(dataset: DatasetRecord) -> OpenTransaction:
        opened = ledger.try_open(intent_on(dataset))
        assert opened is not None
        ledger.decide([one_row(opened)])
        return opened

    return commit
