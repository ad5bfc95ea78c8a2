"""Workspaces whose tables are in a real object store: under the SQL catalog, and under a real REST catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.lakes import Lake, Tidier, tidied
from support.seaweedfs import BUCKET, TABLE_BUCKET, WEED, SeaweedFS, running

# Without the program `test_installed.py` says so.
collect_ignore = (
    []
    if WEED
    else ["test_verbs.py", "test_trouble.py", "test_killed.py", "test_real_catalog.py", "test_source_files.py"]
)

WAREHOUSES = {"sql": f"s3://{BUCKET}/house/one", "rest": f"s3://{TABLE_BUCKET}"}


@pytest.fixture(scope="session")
def seaweed(short_root: Path) -> Iterator[SeaweedFS]:
    """The store and the REST catalog; they stop after the last test."""
    directory = short_root / "seaweedfs"
    directory.mkdir()
    with running(directory) as started:
        yield started


@pytest.fixture(scope="session")
def make_database(postgres: EmbeddedPostgres) -> Callable[[str], str]:
    """Makes an empty database of that name."""

    def make(name: str) -> str:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return postgres.url.replace("/lakeward?", f"/{name}?", 1)

    return make


@pytest.fixture(scope="session")
def open_lake(
    seaweed: SeaweedFS, make_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Lake]]:
    """Opens the workspace of a catalog, once: `sql` or `rest`."""
    opened: dict[str, Lake] = {}

    def make(kind: str) -> Lake:
        if kind not in opened:
            url, warehouse = make_database(f"stores_{kind}"), WAREHOUSES[kind]
            catalog = seaweed.properties() if kind == "sql" else seaweed.rest()
            home = tmp_path_factory.mktemp(kind)
            # Nothing is young enough for a test to wait for.
            (home / "short.toml").write_text("[ledger]\nlease_seconds = 2\n", encoding="utf-8")
            workspace = lakeward.open(
                home, database_url=url, warehouse=warehouse, catalog=catalog, settings_file=home / "short.toml"
            )
            opened[kind] = Lake(workspace, url, warehouse, catalog)
        return opened[kind]

    yield make
    for each in opened.values():
        each.workspace.close()


@pytest.fixture(params=list(WAREHOUSES))
def lake(request: pytest.FixtureRequest, open_lake: Callable[[str], Lake]) -> Lake:
    """The workspace of each catalog in turn."""
    return open_lake(request.param)


@pytest.fixture
def sql_lake(open_lake: Callable[[str], Lake]) -> Lake:
    """The workspace of the SQL catalog."""
    return open_lake("sql")


@pytest.fixture
def tidier() -> Tidier:
    """Maintains a dataset until a file that nothing names is gone."""
    return tidied
