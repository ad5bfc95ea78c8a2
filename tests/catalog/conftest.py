"""A workspace whose catalog is behind a proxy that fails on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.storage.arms.iceberg import trouble
from lakeward.testing.faulty_proxy import FaultyProxy
from lakeward.testing.rest_catalog import RestCatalogServer
from support.trouble import Scene, short_leases


@pytest.fixture(scope="session")
def make_database(postgres: EmbeddedPostgres) -> Callable[[str], str]:
    def make(name: str) -> str:
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return postgres.url.replace("/lakeward?", f"/{name}?", 1)

    return make


@pytest.fixture(scope="session")
def shared_scene(make_database: Callable[[str], str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    root = tmp_path_factory.mktemp("catalog")
    with (
        RestCatalogServer(f"sqlite:///{root / 'catalog.db'}", root / "warehouse") as server,
        FaultyProxy(server.url) as proxy,
        lakeward.open(
            root / "home",
            database_url=make_database("catalog_trouble"),
            warehouse=root / "warehouse",
            catalog={"type": "rest", "uri": proxy.url},
            settings_file=short_leases(root),
        ) as workspace,
    ):
        yield Scene(workspace, proxy, server)


@pytest.fixture
def scene(shared_scene: Scene, monkeypatch: pytest.MonkeyPatch) -> Iterator[Scene]:
    """The scene that all tests of this directory share, without faults at the beginning and at the end."""
    # As many tries as in production, sooner: the faults are counted by requests, not by time.
    monkeypatch.setattr(trouble, "PAUSES", tuple(pause / 20 for pause in trouble.PAUSES))
    shared_scene.proxy.clear()
    yield shared_scene
    shared_scene.proxy.clear()
