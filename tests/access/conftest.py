"""One workspace for all tests of who may do what: each uses a catalog of its own."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

import lakeward
from lakeward.access.guard import itself
from lakeward.control.embedded import EmbeddedPostgres
from support.databases import WORKSPACE, drop_database, made_database

_numbers = count(1)


@pytest.fixture(scope="session")
def ws(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """The workspace, opened by its owner."""
    home: Path = tmp_path_factory.mktemp("access")
    url = made_database(postgres, WORKSPACE)
    with lakeward.open(home, database_url=url, warehouse=home / "warehouse") as opened:
        yield opened
    drop_database(postgres.url, url)


@pytest.fixture
def catalog(ws: lakeward.Workspace) -> str:
    """The name of a catalog with `sales.orders` and `hr.salaries`, of two rows each."""
    name = f"c{next(_numbers)}"
    with itself():
        for dataset in ("sales.orders", "hr.salaries"):
            made = ws.create_dataset(f"{name}.{dataset}", {"id": "long", "amount": "long"}, ["id"])
            made.write([{"id": 1, "amount": 10}, {"id": 2, "amount": 20}])
    return name
