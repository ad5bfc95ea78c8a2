"""Migrations: once, whoever comes first; and every database that can't hold a workspace is refused by name."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import psycopg
import pytest
import sqlalchemy
from alembic.config import Config
from alembic.script import ScriptDirectory
from psycopg import sql

from lakeward.control import schema
from lakeward.control.db import Database
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.schema import HEAD, migrate
from lakeward.control.tree import Tree
from lakeward.errors import ControlError, SettingsError
from lakeward.types.schema import Schema

MIGRATE = (
    "import sys; from lakeward.control.db import Database; from lakeward.control.schema import migrate; "
    "print(migrate(Database(sys.argv[1])))"
)


def test_head_is_the_newest_script() -> None:
    config = Config()
    config.set_main_option("script_location", "lakeward.control:migrations")
    scripts = ScriptDirectory.from_config(config)
    assert scripts.get_heads() == [HEAD]
    revisions = [script.revision for script in scripts.walk_revisions()]
    assert revisions == sorted(revisions, reverse=True), "revisions are compared as texts"


def test_second_migration_does_nothing(database_url: str) -> None:
    with Database(database_url) as database:
        assert migrate(database)
        assert not migrate(database)


def test_six_processes_migrate_an_empty_database_at_once(database_url: str) -> None:
    processes = [
        subprocess.Popen([sys.executable, "-c", MIGRATE, database_url], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(6)
    ]
    answers = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0] * 6, answers
    assert sorted(out.decode().strip() for out, _ in answers) == ["False"] * 5 + ["True"]


def test_threads_migrate_two_databases_at_once(new_database: Callable[[], str]) -> None:
    """Alembic's context is one for the whole process."""
    databases = [Database(new_database()) for _ in range(2)]
    done: list[bool] = []
    threads = [threading.Thread(target=lambda each=each: done.append(migrate(each))) for each in databases * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == [False] * 4 + [True] * 2
    for database in databases:
        Tree(database).create_dataset("m.s.d", Schema.declare({"id": "long"}))
        database.close()


def test_migration_that_fails_leaves_nothing(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA lakeward")
        connection.execute("CREATE TABLE lakeward.iceberg_sync_log ()")  # one of the last that the script makes
    with Database(database_url) as database:
        with pytest.raises(Exception, match="iceberg_sync_log"):
            migrate(database)
        tables = sqlalchemy.text("SELECT tablename FROM pg_tables WHERE schemaname = 'lakeward'")
        assert [row["tablename"] for row in database.fetch(tables)] == ["iceberg_sync_log"]


def test_database_of_a_newer_revision_is_refused(database_url: str) -> None:
    with Database(database_url) as database:
        migrate(database)
        database.fetch(sqlalchemy.text("UPDATE lakeward.alembic_version SET version_num = 'm9999'"))
        with pytest.raises(ControlError, match=f"m9999, this one knows {HEAD}") as caught:
            migrate(database)
    assert caught.value.next_step == "upgrade lakeward"


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_database_in_another_encoding_is_refused(postgres: EmbeddedPostgres, encoding: str) -> None:
    name = f"test_{encoding.lower()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(
            sql.SQL("CREATE DATABASE {} ENCODING {} LOCALE 'C' TEMPLATE template0").format(
                sql.Identifier(name), sql.Literal(encoding)
            )
        )
    with Database(postgres.url.replace("/lakeward?", f"/{name}?", 1)) as database:
        with pytest.raises(SettingsError, match=f"encoded in {encoding}") as caught:
            migrate(database)
        assert "ENCODING 'UTF8'" in str(caught.value)
        assert database.fetch(sqlalchemy.text("SELECT to_regnamespace('lakeward') AS it"))[0]["it"] is None


def test_server_that_is_too_old_is_refused(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schema, "MINIMUM_SERVER", 990_000)
    with Database(database_url) as database, pytest.raises(SettingsError, match="needs 15 or newer"):
        migrate(database)


@pytest.fixture
def poor_user(database_url: str) -> str:
    """The URL of a user without any right in the database."""
    name = database_url.split("/")[3].split("?")[0]
    with psycopg.connect(database_url, autocommit=True) as connection:
        user = sql.Identifier(f"Poor {name}")
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(user))
    return database_url.replace("://postgres@", f"://Poor%20{name}@", 1)


def refusal_and_grant(url: str, owner: str) -> str:
    """Return the grant that the refusal names, after the owner has done it."""
    with Database(url) as database, pytest.raises(SettingsError, match="may not keep a workspace") as caught:
        migrate(database)
    statement = str(caught.value.next_step).partition(": ")[2]
    assert statement.startswith("GRANT ")
    with psycopg.connect(owner, autocommit=True) as connection:
        connection.execute(statement.encode())
    return statement


def test_user_who_may_not_create_is_told_the_grant_and_it_works(database_url: str, poor_user: str) -> None:
    assert refusal_and_grant(poor_user, database_url).startswith("GRANT CREATE ON DATABASE test_")
    with Database(poor_user) as database:
        assert migrate(database)
        Tree(database).create_dataset("m.s.d", Schema.declare({"id": "long"}))


def test_schema_that_was_made_for_the_user_is_enough(database_url: str, poor_user: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA lakeward")
    assert refusal_and_grant(poor_user, database_url).startswith("GRANT USAGE, CREATE ON SCHEMA lakeward TO")
    with Database(poor_user) as database:
        assert migrate(database)


def test_user_who_may_only_see_the_schema_is_told_the_grants(database_url: str, poor_user: str) -> None:
    with Database(database_url) as database:
        migrate(database)
    statements = [refusal_and_grant(poor_user, database_url) for _ in range(2)]
    assert [statement.partition(" ON ")[2].split(" TO ")[0] for statement in statements] == [
        "SCHEMA lakeward",
        "ALL TABLES IN SCHEMA lakeward",
    ]
    with Database(poor_user) as database:
        assert not migrate(database)
        assert Tree(database).datasets() == []
