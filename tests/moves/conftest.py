"""Workspaces whose new tables are born in the legacy namespace, from where they can be moved."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.clock import Faults
from lakeward.control.embedded import EmbeddedPostgres
from support.moves import COLUMNS


@pytest.fixture(scope="session")
def moves_url(postgres: EmbeddedPostgres) -> str:
    """A database for all tests of this directory."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("moves")))
    return postgres.url.replace("/lakeward?", "/moves?", 1)


@pytest.fixture(scope="session")
def opens(moves_url: str, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., lakeward.Workspace]:
    """Opens the one workspace of this directory again, with faults or without."""
    root = tmp_path_factory.mktemp("moves")
    settings = root / "lakeward.toml"
    settings.write_text("[iceberg]\nborn_in_place = false\n", encoding="utf-8")

    def opened(faults: Faults | None = None) -> lakeward.Workspace:
        return lakeward.open(
            root / "home",
            database_url=moves_url,
            warehouse=root / "warehouse",
            settings_file=settings,
            faults=faults,
        )

    return opened


@pytest.fixture(scope="session")
def workspace(opens: Callable[..., lakeward.Workspace]) -> Iterator[lakeward.Workspace]:
    """The workspace that most tests share."""
    with opens() as opened:
        yield opened


@pytest.fixture
def legacy(workspace: lakeward.Workspace, request: pytest.FixtureRequest) -> lakeward.Dataset:
    """A dataset with two rows whose table is in the legacy namespace, by the name of the test."""
    name = f'{request.module.__name__.rpartition(".")[2]}.legacy."{request.node.name}"'
    made = workspace.create_dataset(name, columns=COLUMNS, primary_key=["id"], arm="iceberg")
    made.write([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], mode="append")
    return made
