"""Databases on the server that a session's tests share."""

from __future__ import annotations

import random
from typing import Any

import psycopg
from psycopg import sql

import lakeward
from lakeward.control.db import Database
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.schema import migrate

WORKSPACE = "template_workspace"
"""The database that those of new workspaces are copied from. A copy takes a tenth of what the migrations take."""

# The first two guard against a crash of the machine. A process that is killed, be it one of Postgres itself, loses
# nothing without them: what it wrote is in the kernel's hands. Tests of such crashes have servers of their own anyway.
# The log is written anew until it has its full size, so that is kept small.
_SPARED = {"fsync": "off", "full_page_writes": "off", "max_wal_size": "256MB"}


def never_wait_for_the_disk(server_url: str) -> None:
    """Spare a server, which is thrown away after the tests, what only matters when the machine goes down."""
    with psycopg.connect(server_url, autocommit=True) as connection:
        for name, value in _SPARED.items():
            connection.execute(sql.SQL("ALTER SYSTEM SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
        connection.execute("SELECT pg_reload_conf()")


def make_template(server_url: str) -> None:
    """Make the database `WORKSPACE`, with the tables of a new workspace."""
    with Database(_make(server_url, WORKSPACE, "template1")) as database:
        migrate(database)


def made_database(postgres: EmbeddedPostgres, template: str = "template1") -> str:
    """Make a database, an empty one unless a template is named, and return its libpq URL."""
    return _make(postgres.url, f"test_{random.SystemRandom().randrange(2**48):012x}", template)


def drop_database(server_url: str, url: str) -> None:
    """Drop a database, whoever is still connected to it."""
    name = url.rpartition("/")[2].partition("?")[0]
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _make(server_url: str, name: str, template: str) -> str:
    # Copying files costs a fifth of the other strategy, which writes all of them to the log, too.
    create = sql.SQL("CREATE DATABASE {} TEMPLATE {} STRATEGY file_copy")
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(create.format(sql.Identifier(name), sql.Identifier(template)))
    return server_url.replace("/lakeward?", f"/{name}?", 1)


def rows_of(workspace: lakeward.Workspace, query: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement in a workspace's database, and return its rows."""
    with psycopg.connect(workspace.database.libpq_url, autocommit=True) as connection:
        cursor = connection.execute(query, parameters)
        return cursor.fetchall() if cursor.description is not None else []
