"""Writes all that the database has of a workspace into files of SQL, and reads it back: as it was at one instant.

By Postgres's own `pg_dump` and `psql`, which the package of the embedded server brings: they know every object that a
migration may make. The control plane is the schema `lakeward`, rows of the Postgres arm included; an Iceberg catalog
that is kept in the same database is dumped beside it, from the same snapshot.
"""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import tempfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO

import sqlalchemy
from sqlalchemy.engine import URL, make_url

from lakeward.control.db import Database, Queries
from lakeward.control.embedded.binaries import programs
from lakeward.control.names import full_name
from lakeward.errors import ControlError, UnsupportedPlatform, UsageError

QUERIES = Queries.beside(__file__)

SCHEMA = "lakeward"
CONTROL, CATALOG = "control.sql.gz", "catalog.sql.gz"
"""The files: the second is missing where the catalog is elsewhere."""

_UNKNOWN_TO_OLDER = b"SET transaction_timeout ="
"""A line that servers before 17 refuse."""


@dataclass(frozen=True)
class Head:
    """A dataset as it was.

    Args:
        name, uid, version, rows: of it.
        digest: its checksum's halves, where it was known.
        snapshots: of its Iceberg table, by version.
    """

    name: str
    uid: str
    version: int
    rows: int
    digest: tuple[str, str] | None
    snapshots: dict[str, int]


@dataclass(frozen=True)
class Dumped:
    """What was dumped.

    Args:
        at: by the database's clock.
        revision: the newest migration of its tables.
        server: the version of the server, as Postgres counts.
        files: that were written.
        heads: of all datasets.
    """

    at: datetime
    revision: str
    server: int
    files: tuple[Path, ...]
    heads: tuple[Head, ...]


def dump(database: Database, folder: Path) -> Dumped:
    """Write the files into a folder. Writers go on meanwhile, and are not in it.

    Raises:
        ControlError: a program failed, or there is none.
    """
    with database.engine.execution_options(isolation_level="REPEATABLE READ").begin() as connection:
        seen = connection.execute(QUERIES["snapshot"]).mappings().one()
        heads = tuple(_head(row) for row in connection.execute(QUERIES["heads"]).mappings())
        beside = [row.name for row in connection.execute(QUERIES["catalog_tables"])]
        files = [_dumped(database, folder / CONTROL, seen["name"], ["--schema", SCHEMA])]
        if beside:
            chosen = [part for name in beside for part in ("--table", name)]
            files.append(_dumped(database, folder / CATALOG, seen["name"], chosen))
        return Dumped(seen["at"], seen["revision"], seen["server"], tuple(files), heads)


def check_empty(database: Database) -> None:
    """Refuse a database that has a workspace with datasets, or a catalog with tables.

    Raises:
        UsageError: it has.
    """
    (there,) = database.fetch(QUERIES["there"])
    datasets = database.fetch(QUERIES["datasets"])[0]["n"] if there["workspace"] else 0
    tables = database.fetch(QUERIES["tables"])[0]["n"] if there["catalog"] else 0
    if datasets or tables:
        what = f"{datasets} datasets" if datasets else f"a catalog of {tables} tables"
        raise UsageError(
            f"the database at {database.display_url} has {what} already",
            safe="nothing was changed",
            next_step="restore into a new home (--home DIR) or an empty database",
        )


def restore(database: Database, files: Sequence[Path]) -> None:
    """Bring the files into a database that `check_empty` has passed: all of them, or nothing, in one transaction.

    Raises:
        ControlError: a program failed; the database is as it was.
    """
    (there,) = database.fetch(QUERIES["there"])
    with _running(database, "psql", ["--no-psqlrc", "--quiet", *_STOP], pipe=True) as process:
        assert process.stdin is not None
        try:
            # An option of psql would commit at the end of what it reads, which comes, too, when we are killed.
            process.stdin.write(f"BEGIN;\nDROP SCHEMA IF EXISTS {SCHEMA} CASCADE;\n".encode())
            for file in files:
                if file.name == CATALOG:
                    process.stdin.write(b"DROP TABLE IF EXISTS iceberg_tables, iceberg_namespace_properties;\n")
                with _whole(file) as lines:
                    _send(lines, process.stdin, older=there["server"] < 170_000)
            process.stdin.write(b"COMMIT;\n")
            process.stdin.close()
        except BrokenPipeError:
            pass  # It says itself why it went.


@contextmanager
def _whole(file: Path) -> Iterator[gzip.GzipFile]:
    try:
        with gzip.open(file) as lines:
            yield lines
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ControlError(
            f"the backup is damaged: {file.name}: {error}", safe="nothing was changed", next_step="take another one"
        ) from None


_STOP = ("--set", "ON_ERROR_STOP=1", "--output", os.devnull)


def _send(lines: gzip.GzipFile, to: IO[bytes], *, older: bool) -> None:
    if older:
        # Settings are in the first lines, before any rows.
        for line in lines:
            if not line.startswith(_UNKNOWN_TO_OLDER):
                to.write(line)
            if line.startswith(b"SET row_security"):
                break
    shutil.copyfileobj(lines, to)


def _dumped(database: Database, file: Path, snapshot: str, what: Sequence[str]) -> Path:
    options = ["--no-owner", "--no-privileges", "--snapshot", snapshot, "--compress", "gzip:1", "--file", str(file)]
    with _running(database, "pg_dump", [*options, *what]):
        pass
    return file


@contextmanager
def _running(
    database: Database, program: str, options: Sequence[str], *, pipe: bool = False
) -> Iterator[subprocess.Popen[bytes]]:
    """Run one of Postgres's programs, and raise what it says if it fails."""
    url = make_url(database.libpq_url)
    # The password in its environment: everybody can read its arguments.
    environment = {**os.environ, "PGAPPNAME": "lakeward backup", "PGCONNECT_TIMEOUT": "30"}
    for name, value in (("PGPASSWORD", url.password), ("PGSSLPASSWORD", url.query.get("sslpassword"))):
        if value:
            environment[name] = str(value)
    # Its own `set` takes None for "as it is".
    bare = URL.create(url.drivername, url.username, None, url.host, url.port, url.database, url.query)
    open_part = bare.difference_update_query(["sslpassword"]).render_as_string()
    open_part = open_part.replace("+", "%20")
    with tempfile.TemporaryFile() as said:
        command = [_program(program), "--dbname", open_part, "--no-password", *options]
        with subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE if pipe else subprocess.DEVNULL, stderr=said
        ) as process:
            try:
                yield process
            except BaseException:
                process.kill()
                raise
        if process.returncode:
            said.seek(0)
            text = database.redacted(said.read(4000).decode(errors="replace")).strip()
            raise ControlError(
                f"{program} failed at {database.display_url}: {text}",
                safe="nothing was changed",
                next_step="give it a connection past any pooler; of a server newer than 18, use its own pg_dump",
            )


def _program(name: str) -> str:
    """Return the path of a program: that of the embedded server's package, else that of PATH."""
    try:
        return str(programs() / name)
    except UnsupportedPlatform:
        found = shutil.which(name)
    if found is None:
        raise ControlError(
            f"{name} of Postgres is not installed",
            safe="nothing was changed",
            next_step="install the client programs of Postgres, in the version of the server or a newer one",
        )
    return found


def _head(row: sqlalchemy.RowMapping) -> Head:
    digest = (row["digest_high"], row["digest_low"]) if row["digest_high"] is not None else None
    return Head(full_name(row["name"]), row["uid"], row["version"], row["rows"], digest, dict(row["snapshots"]))
