"""Databases on the server that a session's tests share."""

from __future__ import annotations

import random

import psycopg
from psycopg import sql

from lakeward.control.embedded import EmbeddedPostgres


def made_database(postgres: EmbeddedPostgres) -> str:
    """Make an empty database and return its libpq URL."""
    name = f"test_{random.SystemRandom().randrange(2**48):012x}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    return postgres.url.replace("/lakeward?", f"/{name}?", 1)
