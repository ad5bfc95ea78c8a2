"""A workspace with tables in its catalog that another engine has written."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import psycopg
import pyarrow as pa
import pytest
from psycopg import sql
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import Table

import lakeward
from lakeward.clock import Faults
from lakeward.control.embedded import EmbeddedPostgres

_numbers = itertools.count(1)

MakeTable = Callable[..., Table]


@pytest.fixture(scope="session")
def opens(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., lakeward.Workspace]:
    """Opens the one workspace of this directory again, with faults or without."""
    root = tmp_path_factory.mktemp("adoption")
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("adoption")))
    url = postgres.url.replace("/lakeward?", "/adoption?", 1)

    def opened(faults: Faults | None = None) -> lakeward.Workspace:
        return lakeward.open(root / "home", database_url=url, warehouse=root / "warehouse", faults=faults)

    return opened


@pytest.fixture(scope="session")
def workspace(opens: Callable[..., lakeward.Workspace]) -> Iterator[lakeward.Workspace]:
    with opens() as opened:
        yield opened


@pytest.fixture(scope="session")
def theirs(workspace: lakeward.Workspace) -> SqlCatalog:
    """The workspace's catalog, as another engine has it."""
    workspace.storage.routing.arm("iceberg").receiver().catalog(probe=True)
    warehouse = workspace.storage.routing.arm("iceberg")._tables.warehouse
    catalog = SqlCatalog("lakeward", uri=workspace.database.sqlalchemy_url, warehouse=warehouse)
    catalog.create_namespace_if_not_exists("theirs")
    return catalog


@pytest.fixture
def make_table(theirs: SqlCatalog) -> MakeTable:
    """Makes a table of another engine, in several files."""

    def make(*pieces: pa.Table, schema: pa.Schema | None = None, **options: object) -> Table:
        table = theirs.create_table(
            ("theirs", f"t{next(_numbers)}"),
            schema or pieces[0].schema,
            **{"properties": {"format-version": "2"}, **options},
        )
        for piece in pieces:
            table.append(piece)
        return table

    return make
