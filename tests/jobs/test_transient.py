"""What a job tries again: what may be gone then, and never what a source has refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import adbc_driver_postgresql.dbapi
import psycopg
import psycopg2
import pytest
import sqlalchemy

from lakeward.control.db import Database
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.errors import LakewardError, SourceError, SourceRefused
from lakeward.jobs.transient import FINAL, TRANSIENT, passes
from lakeward.sources.connectors.postgres_errors import PostgresErrors
from lakeward.sources.object_store import told

ASK = "SELECT * FROM secret.wages"


def by_the_pool(database: Database, statement: str) -> None:
    database.fetch(sqlalchemy.text(statement))


def by_psycopg2(database: Database, statement: str) -> None:
    with contextlib.closing(psycopg2.connect(database.libpq_url)) as connection, connection.cursor() as cursor:
        cursor.execute(statement)


def by_adbc(database: Database, statement: str) -> None:
    with adbc_driver_postgresql.dbapi.connect(database.libpq_url) as connection, connection.cursor() as cursor:
        cursor.execute(statement)
        cursor.fetch_arrow_table()


@pytest.fixture(scope="module")
def shop(postgres: EmbeddedPostgres) -> str:
    """A database with a table that one role may not read, and one that may not log in."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA secret")
        connection.execute("CREATE TABLE secret.wages (id int)")
        connection.execute("CREATE ROLE reader LOGIN")
        connection.execute("CREATE ROLE nobody NOLOGIN")
    return postgres.url


@pytest.mark.parametrize("ask", [by_the_pool, by_psycopg2, by_adbc])
@pytest.mark.parametrize(
    ("change", "refused"),
    [
        ({"username": "reader"}, True),
        ({"username": "nobody"}, True),
        ({"username": "nonesuch"}, True),
        ({"database": "nonesuch"}, True),
        ({"query": {"host": "/nonesuch"}}, False),
    ],
    ids=lambda each: str(each),
)
def test_what_postgres_refuses(
    shop: str, ask: Callable[[Database, str], None], change: dict[str, Any], refused: bool
) -> None:
    """By each driver that sources are read with; a server that is not there may come back."""
    database = Database(sqlalchemy.make_url(shop).set(**change).render_as_string(hide_password=False))
    errors = PostgresErrors(database)
    with contextlib.closing(database), pytest.raises(SourceError) as raised, errors.named():
        try:
            ask(database, ASK)
        except psycopg2.Error as error:
            raise errors.of(error) from None
    assert isinstance(raised.value, SourceRefused) is refused, raised.value
    assert passes(raised.value) is not refused


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ('connection failed: FATAL:  password authentication failed for user "ann"', True),
        ("fe_sendauth: no password supplied", True),
        ('FATAL:  no pg_hba.conf entry for host "10.0.0.7", user "ann", database "shop", no encryption', True),
        ("FATAL:  SASL authentication failed", True),
        ("FATAL:  the database system is starting up", False),
        ("FATAL:  sorry, too many clients already", False),
        ("server closed the connection unexpectedly", False),
        ('could not translate host name "db" to address: Temporary failure in name resolution', False),
    ],
)
def test_what_is_said_to_who_may_not_log_in(shop: str, said: str, refused: bool) -> None:
    """No driver tells its code."""
    with contextlib.closing(Database(shop)) as database:
        assert passes(PostgresErrors(database).said(said)) is not refused


@pytest.mark.parametrize(
    ("said", "refused"),
    [
        ("When listing: AWS Error ACCESS_DENIED during ListObjectsV2 operation: (HTTP status 403)", True),
        ("When getting: AWS Error INVALID_ACCESS_KEY_ID during HeadObject operation", True),
        ("When getting: AWS Error UNKNOWN (HTTP status 401) during HeadObject operation", True),
        ("When getting: AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation", True),
        ("When getting: AWS Error SLOW_DOWN during ListObjectsV2 operation", False),
        ("When getting: AWS Error NETWORK_CONNECTION during HeadObject operation", False),
        ("When getting: AWS Error UNKNOWN (HTTP status 503) during HeadObject operation", False),
    ],
)
def test_what_a_store_refuses(said: str, refused: bool) -> None:
    with pytest.raises(SourceError) as raised, told("s3://bucket/key"):
        raise OSError(said)
    assert passes(raised.value) is not refused, raised.value


def test_what_derives_from_a_class_counts_too_and_of_several_each_has_to() -> None:
    assert set(FINAL) <= {each for kind in TRANSIENT for each in kind.__subclasses__()}, "else it says nothing"
    assert passes(SourceError("away"))
    assert not passes(LakewardError("wrong"))
