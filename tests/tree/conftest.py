"""One workspace with short leases and short waits, processes that work in it, and days that pass at once."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.crashes import Driver
from support.ledger import rows

_numbers = itertools.count(1)

MakeDataset = Callable[..., lakeward.Dataset]


@pytest.fixture(scope="session")
def tree_url(postgres: EmbeddedPostgres) -> str:
    """The database of these tests."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("tree")))
    return postgres.url.replace("/lakeward?", "/tree?", 1)


@pytest.fixture(scope="session")
def tree_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of the warehouse and of the settings file."""
    root = tmp_path_factory.mktemp("tree")
    settings = "[ledger]\nlease_seconds = 1\nlock_timeout_seconds = 20\n[compaction]\nmode = 'off'\n"
    (root / "lakeward.toml").write_text(settings, encoding="utf-8")
    return root


@pytest.fixture(scope="session")
def warehouse(tree_root: Path) -> Path:
    """Where the Iceberg tables are."""
    return tree_root / "warehouse"


@pytest.fixture(scope="session")
def ws(tree_url: str, tree_root: Path, warehouse: Path) -> Iterator[lakeward.Workspace]:
    """The workspace."""
    settings = tree_root / "lakeward.toml"
    with lakeward.open(
        tree_root / "home", database_url=tree_url, warehouse=warehouse, settings_file=settings
    ) as workspace:
        yield workspace


@pytest.fixture(scope="session")
def driver(ws: lakeward.Workspace, tree_url: str, warehouse: Path) -> Iterator[Driver]:
    """Forks processes in that workspace."""
    with Driver(tree_url, warehouse) as running:
        yield running


@pytest.fixture
def place() -> str:
    """A schema, in a catalog of its own, that nobody has used."""
    return f"c{next(_numbers)}.s"


@pytest.fixture
def dataset(ws: lakeward.Workspace, place: str) -> MakeDataset:
    """Makes a dataset with two versions."""

    def make(arm: str = "iceberg", name: str = "orders") -> lakeward.Dataset:
        made = ws.create_dataset(f"{place}.{name}", {"id": "long", "note": "string"}, ["id"], arm=arm)
        made.write([{"id": number, "note": name} for number in range(5)])
        made.write([{"id": 3, "note": "again"}], mode="upsert")
        return made

    return make


@pytest.fixture
def a_month_later(ws: lakeward.Workspace, warehouse: Path) -> Callable[[], None]:
    """Lets a month pass: what the test has dropped can't come back, and what was written is old."""
    before = rows(ws.database, "SELECT coalesce(max(id), 0) FROM lakeward.drops")[0][0]

    def pass_() -> None:
        then = time.time() - 86_400
        for path in warehouse.rglob("*"):
            os.utime(path, (then, then), follow_symlinks=False)
        with psycopg.connect(ws.database.libpq_url) as connection:
            connection.execute(
                "UPDATE lakeward.drops SET dropped_at = dropped_at - interval '30 days', "
                "undo_until = undo_until - interval '30 days' WHERE id > %s",
                (before,),
            )

    return pass_
