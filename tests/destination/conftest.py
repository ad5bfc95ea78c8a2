"""Pipelines of dlt into a workspace on both arms, and into DuckDB, by which dlt itself shows what it means."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"

import dlt
import duckdb
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.dlt import lakeward as destination
from support.databases import WORKSPACE, made_database

ARMS = ("postgres", "iceberg")

Made = Callable[..., dlt.Pipeline]
Rows = list[dict[str, object]]


@pytest.fixture(scope="session")
def loads_url(postgres: EmbeddedPostgres) -> str:
    """The workspace's own database."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def loads_place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the warehouse is, and where dlt works."""
    return tmp_path_factory.mktemp("loads")


@pytest.fixture(scope="session")
def ws(loads_url: str, loads_place: Path) -> Iterator[lakeward.Workspace]:
    """A workspace that dlt loads into."""
    with lakeward.open(database_url=loads_url, warehouse=loads_place / "warehouse") as workspace:
        yield workspace


@pytest.fixture(scope="session")
def pipeline(ws: lakeward.Workspace, loads_place: Path) -> Made:
    """Makes a pipeline into the schema of its name, by the catalog of an arm's name; or into DuckDB."""

    def make(name: str, kind: str = "postgres", *, working: str | None = None, **how: str) -> dlt.Pipeline:
        if kind == "duckdb":
            target = dlt.destinations.duckdb(str(loads_place / f"file_{name}.duckdb"))
        else:
            target = destination(catalog=kind, arm=kind, workspace=ws)
        place = str(loads_place / (working or "pipelines"))
        return dlt.pipeline(f"{name}_{kind}", destination=target, dataset_name=name, pipelines_dir=place, **how)

    return make


@pytest.fixture(scope="session")
def rows(ws: lakeward.Workspace, loads_place: Path) -> Callable[[str, str, str], Rows]:
    """Returns the rows of a table; none, if it is not there."""

    def read(name: str, kind: str, table: str) -> Rows:
        if kind != "duckdb":
            known = {dataset.name: dataset for dataset in ws.datasets()}
            found = known.get(f"{kind}.{name}.{table}")
            return found.to_arrow().to_pylist() if found else []
        with duckdb.connect(str(loads_place / f"file_{name}.duckdb"), read_only=True) as connection:
            tables = connection.execute("SELECT table_name FROM information_schema.tables").fetchall()
            return connection.table(f"{name}.{table}").to_arrow_table().to_pylist() if (table,) in tables else []

    return read
