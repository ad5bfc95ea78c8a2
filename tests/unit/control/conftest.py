"""A migrated database, its tree and ledger, and a server of Debian's where there is one."""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from lakeward.control.db import Database
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.ledger import Ledger
from lakeward.control.records import OpenTransaction
from lakeward.control.schema import migrate
from lakeward.control.tree import DatasetRecord, Tree
from lakeward.types.schema import Schema
from support.databases import never_wait_for_the_disk
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
        never_wait_for_the_disk(server.url)
        yield server.url


# Not TRUNCATE, which makes new files for each table and index: five times the work for a few rows.
EMPTY = """
DO $$ DECLARE
    held text;
BEGIN
    SET LOCAL session_replication_role = replica;  -- foreign keys need no order then
    FOR held IN SELECT format('%I.%I', schemaname, tablename) FROM pg_tables
                WHERE schemaname = 'lakeward' AND tablename <> 'alembic_version' LOOP
        EXECUTE 'DELETE FROM ' || held;
    END LOOP;
    PERFORM setval(format('%I.%I', schemaname, sequencename)::regclass, start_value, false)
    FROM pg_sequences WHERE schemaname = 'lakeward';
END $$
"""


@pytest.fixture(scope="session")
def emptied() -> Callable[[str], str]:
    """Returns the URL of a server's one migrated database, as it was before any test wrote to it.

    One is made per server and emptied for each test: to make a database takes a second on a busy machine.
    """
    urls: dict[str, str] = {}

    def empty(server_url: str) -> str:
        if server_url not in urls:
            name = f"migrated_{random.SystemRandom().randrange(2**48):012x}"
            with psycopg.connect(server_url, autocommit=True) as connection:
                connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
            urls[server_url] = server_url.replace("/lakeward?", f"/{name}?", 1)
            with Database(urls[server_url]) as database:
                migrate(database)
        with psycopg.connect(urls[server_url], autocommit=True) as connection:
            connection.execute(EMPTY)
        return urls[server_url]

    return empty


@pytest.fixture
def any_database(any_server: str, emptied: Callable[[str], str]) -> Iterator[Database]:
    """An empty migrated database on each kind of server."""
    with Database(emptied(any_server)) as database:
        yield database


@pytest.fixture
def database(postgres: EmbeddedPostgres, emptied: Callable[[str], str]) -> Iterator[Database]:
    """An empty migrated database."""
    with Database(emptied(postgres.url)) as database:
        yield database


@pytest.fixture
def tree(database: Database) -> Tree:
    """The tree of names in `database`."""
    return Tree(database)


@pytest.fixture
def ledger(database: Database) -> Ledger:
    """The ledger in `database`."""
    return Ledger(database)


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
