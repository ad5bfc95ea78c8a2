"""The application in this process, over one workspace that the tests of the API share; each makes its own datasets."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from threading import Thread

import pytest
import uvicorn
from fastapi import FastAPI
from starlette.testclient import TestClient

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.server.app import create_app
from support.databases import WORKSPACE, drop_database, made_database

COLUMNS = {"id": "long", "note": "string", "amount": "decimal(18,4)"}
_numbers = count(1)

Make = Callable[..., lakeward.Dataset]


@pytest.fixture(scope="session")
def served_workspace(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lakeward.Workspace]:
    """The workspace that the application serves."""
    home = tmp_path_factory.mktemp("api")
    url = made_database(postgres, WORKSPACE)
    with lakeward.open(home, database_url=url, warehouse=home / "warehouse") as opened:
        yield opened
    drop_database(postgres.url, url)


@pytest.fixture(scope="session")
def new_app(served_workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., FastAPI]:
    """Makes the application; each is of one event loop."""
    scratch: Path = tmp_path_factory.mktemp("bodies")
    return lambda **more: create_app(served_workspace, scratch, page_rows=100, body_limit=8 << 20, **more)


@pytest.fixture(scope="session")
def api(new_app: Callable[..., FastAPI]) -> Iterator[TestClient]:
    """A client whose paths begin behind `/api/v1`."""
    with TestClient(new_app(), base_url="http://localhost/api/v1") as client:
        yield client


@pytest.fixture
def make(served_workspace: lakeward.Workspace) -> Make:
    """Makes a dataset of three rows for a test."""

    def made(arm: str = "postgres", rows: int = 3) -> lakeward.Dataset:
        dataset = served_workspace.create_dataset(f"main.api.d{next(_numbers)}", COLUMNS, ["id"], arm=arm)
        if rows:
            dataset.write([{"id": each, "note": f"n{each}", "amount": each} for each in range(1, rows + 1)])
        return dataset

    return made


@pytest.fixture
def limited(
    served_workspace: lakeward.Workspace, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[], lakeward.Workspace]:
    """Opens the workspace once more, with the settings that the environment has then."""
    settings = served_workspace.settings.values
    assert settings.database_url is not None
    url = settings.database_url.get_secret_value()
    return lambda: lakeward.open(settings.home, database_url=url, warehouse=settings.warehouse)


@pytest.fixture(scope="session")
def live(new_app: Callable[..., FastAPI]) -> Iterator[str]:
    """The URL behind which the application really listens, for what is no answer as a whole."""
    server = uvicorn.Server(uvicorn.Config(new_app(), log_config=None, access_log=False))
    listener = socket.create_server(("127.0.0.1", 0))
    thread = Thread(target=server.run, args=([listener],))
    thread.start()
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/api/v1"
    server.should_exit = True
    thread.join()
