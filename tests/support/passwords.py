"""A user of the tests' server who needs a password, as on any server that is not our own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import psycopg
from psycopg import sql

from lakeward.control.embedded import EmbeddedPostgres

USER, PASSWORD = "outsider", "a b:c@d/ü%+"
"""Of characters that are written differently in an address."""


@contextmanager
def outsider(postgres: EmbeddedPostgres, *databases: str) -> Iterator[list[str]]:
    """Give somebody with a password databases of their own, which are gone afterwards; yield their libpq URLs."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        ((hba,),) = connection.execute("SHOW hba_file").fetchall()
        file, user = Path(hba), sql.Identifier(USER)
        before = file.read_text(encoding="utf-8")
        # The first line that fits counts.
        file.write_text(f"local all {USER} scram-sha-256\n{before}", encoding="utf-8")
        connection.execute("SELECT pg_reload_conf()")
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN PASSWORD {}").format(user, sql.Literal(PASSWORD)))
        for each in databases:
            connection.execute(sql.SQL("CREATE DATABASE {} OWNER {}").format(sql.Identifier(each), user))
        place = urlsplit(postgres.url)
        there = f"{USER}:{quote(PASSWORD, safe='')}@{place.netloc.rpartition('@')[2]}"
        try:
            yield [urlunsplit(place._replace(netloc=there, path=f"/{each}")) for each in databases]
        finally:
            for each in databases:
                connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(each)))
            connection.execute(sql.SQL("DROP ROLE {}").format(user))
            file.write_text(before, encoding="utf-8")
            connection.execute("SELECT pg_reload_conf()")
