"""TPC-H's 22 queries as pipelines over either arm give what DuckDB gives over the same Parquet files.

The queries are those of the specification. Written as pipelines, the view of query 15 is a common table expression and
every result column has a name. The parameters are those of its validation; queries 8 and 17 have others, since they
would find nothing in so few rows, and query 11 has the fraction of scale 1.
"""

from __future__ import annotations

import datetime as dt
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet as pq
import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.databases import WORKSPACE, made_database

SCALE = "0.01"
QUERIES = {file.stem: file.read_text(encoding="utf-8") for file in sorted(Path(__file__).parent.glob("queries/*.sql"))}
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")
ARMS = ("postgres", "iceberg")
OTHER = dict(zip(ARMS, reversed(ARMS), strict=True))
TYPES = {"int64": "long", "int32": "int", "date32[day]": "date", "decimal128(15, 2)": "decimal(15,2)"}

Rows = list[tuple[object, ...]]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tables as Parquet files."""
    folder = tmp_path_factory.mktemp("tpch")
    generator = Path(sys.executable).parent / "tpchgen-cli"
    subprocess.run([str(generator), "parquet", "-q", "-s", SCALE, "-o", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def plain(files: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB over these files."""
    with duckdb.connect() as connection:
        for name in TABLES:
            connection.execute(f"CREATE VIEW {name} AS FROM '{files / name}.parquet'")
        yield connection


@pytest.fixture(scope="module")
def loaded(
    postgres: EmbeddedPostgres, files: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[lakeward.Workspace]:
    """A workspace with the tables on each arm, and the pipelines of every query over either."""
    root = tmp_path_factory.mktemp("tpch-workspace")
    folder = root / "project" / "pipelines"
    folder.mkdir(parents=True)
    (folder.parent / "lakeward.toml").touch()
    with lakeward.open(
        root / "home", database_url=made_database(postgres, WORKSPACE), warehouse=root / "warehouse"
    ) as workspace:
        for arm in ARMS:
            for name in TABLES:
                table = pq.read_table(files / f"{name}.parquet")
                columns = {field.name: TYPES.get(str(field.type), "string") for field in table.schema}
                workspace.create_dataset(f"main.{arm}.{name}", columns, arm=arm).write(table)
            for query, sql in QUERIES.items():
                (folder / f"{arm}_{query}.sql").write_text(pipeline(query, sql, arm), encoding="utf-8")
        workspace.apply(folder.parent)
        yield workspace


def pipeline(query: str, sql: str, arm: str) -> str:
    """Return the file of a pipeline: sources on one arm, the output on the other one."""
    sources = ", ".join(f"{name}: main.{arm}.{name}" for name in TABLES if re.search(rf"\b{name}\b", sql))
    header = f"-- pipeline: {arm}_{query}\n-- sources: {{{sources}}}\n-- output: main.from_{arm}.{query}\n"
    return f"{header}-- strategy: replace\n-- arm: {OTHER[arm]}\n{sql}"


def in_order(rows: Rows) -> Rows:
    """Return rows in an order of their own: a dataset has none. What is compared loosely does not order them."""

    def key(row: tuple[object, ...]) -> list[str]:
        return [f"{value:.6g}" if isinstance(value, float) else str(value) for value in row]

    return sorted(rows, key=key)


def same(found: object, expected: object) -> bool:
    """Say whether two values are equal, of one type; a computed double by tolerance."""
    if isinstance(expected, float):
        return isinstance(found, float) and math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-12)
    if isinstance(expected, int):
        # The sum of integers is a decimal of 38 digits in a dataset.
        return isinstance(found, int | Decimal) and found == expected
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize("arm", ARMS)
@pytest.mark.parametrize("query", QUERIES)
def test_a_query_gives_what_duckdb_gives(
    loaded: lakeward.Workspace, plain: duckdb.DuckDBPyConnection, query: str, arm: str
) -> None:
    loaded.build(f"{arm}_{query}")
    output = loaded.dataset(f"main.from_{arm}.{query}")
    table = output.to_arrow()
    expected = plain.execute(QUERIES[query])
    names = [column[0] for column in expected.description]
    assert (output.arm, table.column_names) == (OTHER[arm], names)
    expected_rows = in_order(expected.fetchall())
    found = in_order([tuple(row.values()) for row in table.to_pylist()])
    assert len(found) == len(expected_rows) > 0
    for one, other in zip(found, expected_rows, strict=True):
        assert all(map(same, one, other)), f"{one} instead of {other}"


def test_there_are_22_queries_and_all_that_a_dataset_can_hold_of_their_types_comes_through(
    loaded: lakeward.Workspace, plain: duckdb.DuckDBPyConnection
) -> None:
    assert list(QUERIES) == [f"q{number:02}" for number in range(1, 23)]
    for arm in ARMS:
        for name in TABLES:
            dataset = loaded.dataset(f"main.{arm}.{name}")
            expected = plain.execute(f"FROM {name}").fetchall()
            assert sorted(map(str, expected)) == sorted(
                str(tuple(row.values())) for row in dataset.to_arrow().to_pylist()
            )
    kinds = {type(value) for row in plain.execute("FROM lineitem LIMIT 1").fetchall() for value in row}
    assert kinds == {int, str, Decimal, dt.date}
