"""One workspace for all crash tests, and the process that forks those that are to die."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.crashes import Driver
from support.databases import WORKSPACE, made_database

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def crash_url(postgres: EmbeddedPostgres) -> str:
    """The database of the crash tests."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def crash_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The warehouse of the crash tests."""
    return tmp_path_factory.mktemp("crash") / "warehouse"


@pytest.fixture(scope="session")
def ws(crash_url: str, crash_warehouse: Path) -> Iterator[lakeward.Workspace]:
    """The workspace, as a process sees it that survives all the others."""
    with lakeward.open(database_url=crash_url, warehouse=crash_warehouse) as workspace:
        yield workspace


@pytest.fixture(scope="session")
def driver(ws: lakeward.Workspace, crash_url: str, crash_warehouse: Path) -> Iterator[Driver]:
    """Forks cases in that workspace."""
    with Driver(crash_url, crash_warehouse) as running:
        yield running


@pytest.fixture
def make(ws: lakeward.Workspace) -> Callable[[str], lakeward.Dataset]:
    """Makes an empty dataset on an arm."""

    def create(arm: str) -> lakeward.Dataset:
        columns = {"id": "long", "note": "string"}
        return ws.create_dataset(f"main.crash.d{next(_numbers)}", columns, ["id"], arm=arm)

    return create
