"""The tables of procrastinate: made in our schema, used without a search path, brought up to date."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import sqlalchemy

from lakeward.control import job_schema
from lakeward.control.db import Database
from lakeward.control.job_schema import bring_up_to_date, install, remove
from lakeward.errors import ControlError

FUNCTIONS = """
SELECT p.proname || pg_get_function_identity_arguments(p.oid), coalesce(p.proconfig::text, 'no path')
FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'lakeward' ORDER BY 1
"""
COLUMNS = """
SELECT table_name, column_name, data_type, udt_name FROM information_schema.columns
WHERE table_schema = 'lakeward' AND table_name LIKE 'procrastinate%' ORDER BY 1, 2
"""
INDEXES = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'lakeward' ORDER BY 1"
ELSEWHERE = (
    "SELECT count(*) FROM pg_class WHERE relname LIKE 'procrastinate%' AND relnamespace = 'public'::regnamespace"
)


@pytest.fixture
def database(new_database: Callable[[], str]) -> Callable[[], Database]:
    """Makes databases with our schema, and nothing in it."""

    def make() -> Database:
        made = Database(new_database())
        _run(made, "CREATE SCHEMA lakeward")
        return made

    return make


def test_a_newer_package_brings_the_tables_to_where_it_would_have_made_them(
    database: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the very first version of the package on, which had other tables."""
    migrations = dict(job_schema._migrations())
    with database() as old, database() as new:
        with new.transaction() as connection:
            install(connection)
        assert bring_up_to_date(new) == []
        first, *later = sorted(migrations)
        monkeypatch.setattr(job_schema, "_migrations", lambda: iter([(first, migrations[first])]))
        with old.transaction() as connection:
            job_schema._run(connection, migrations[first])
            connection.execute(job_schema.QUERIES["table"])
            connection.execute(job_schema.QUERIES["first"], {"name": first})
        assert bring_up_to_date(old) == []
        monkeypatch.undo()
        assert bring_up_to_date(old) == later
        assert bring_up_to_date(old) == []
        for what in (COLUMNS, INDEXES):
            assert _run(old, what) == _run(new, what)
        # Some migrations leave functions of former versions for workers of former versions.
        assert set(_run(new, FUNCTIONS)) <= set(_run(old, FUNCTIONS))
        assert all("search_path" in str(each[1]) for each in _run(old, FUNCTIONS))
        assert _run(old, ELSEWHERE) == _run(new, ELSEWHERE) == [(0,)]
        with new.transaction() as connection:
            remove(connection)
        assert _run(new, FUNCTIONS) == _run(new, COLUMNS) == []


def test_an_older_package_is_refused(database: Callable[[], Database], monkeypatch: pytest.MonkeyPatch) -> None:
    with database() as ours:
        with ours.transaction() as connection:
            install(connection)
        monkeypatch.setattr(job_schema, "_migrations", lambda: iter([("00.00.00_01_initial.sql", "")]))
        with pytest.raises(ControlError, match="of a newer procrastinate"):
            bring_up_to_date(ours)


def _run(database: Database, statement: str) -> list[tuple[object, ...]]:
    with database.transaction() as connection:
        result = connection.execute(sqlalchemy.text(statement))
        return [tuple(row) for row in result] if result.returns_rows else []
