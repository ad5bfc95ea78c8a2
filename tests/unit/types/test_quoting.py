"""Names and texts survive quoting in both engines."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from psycopg import sql

from lakeward.types.quoting import duckdb_name, duckdb_text, postgres_name, postgres_text
from support.documents import Documents
from support.rows import ODD_NAMES, names, texts


@given(names, texts)
def test_n01_s03_duckdb(name: str, text: str) -> None:
    with duckdb.connect() as engine:
        result = engine.execute(f"SELECT {duckdb_text(text)} AS {duckdb_name(name)}")
        assert [column[0] for column in result.description] == [name]
        assert result.fetchall() == [(text,)]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("conforming", ["on", "off"])
@pytest.mark.parametrize("values", [(1,), None], ids=["with parameters", "without"])
def test_n01_s03_postgres(documents: Documents, name: str, conforming: str, values: tuple[int] | None) -> None:
    query = sql.SQL("SELECT {} AS {}").format(postgres_text(name), postgres_name(name))
    if values:
        query += sql.SQL(", %s")
    with documents.connection.transaction(force_rollback=True):
        documents.connection.execute(sql.SQL("SET standard_conforming_strings = {}").format(sql.SQL(conforming)))
        cursor = documents.connection.execute(query, values)
        assert cursor.description is not None
        assert cursor.description[0].name == name
        assert cursor.fetchone() == (name, *(values or ()))
