"""pgbouncer in transaction mode in front of the tests' server, and a workspace behind it."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.account import server_account

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer")

SESSIONS = 4
"""So many server sessions serve everybody. One copy between the arms needs three at once: it reads, asks the catalog,
and keeps its lease."""

# Without the program `test_installed.py` says so.
collect_ignore = [] if PGBOUNCER else ["test_transaction_mode.py"]


@pytest.fixture(scope="session")
def sessions() -> int:
    """How many server sessions there are."""
    return SESSIONS


@pytest.fixture(scope="session")
def bouncer(postgres: EmbeddedPostgres, short_root: Path) -> Iterator[str]:
    """The URL of a database behind pgbouncer, which runs as the server's own user: it refuses to be root."""
    assert PGBOUNCER is not None
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier("bounced")))
        user, server_directory = connection.info.user, connection.info.host
    account = server_account(short_root / "postgres" / "data")
    place = short_root / "pgbouncer"
    place.mkdir(mode=0o755)
    os.chown(place, account.uid, account.gid)
    settings = place / "pgbouncer.ini"
    settings.write_text(
        f"""[databases]
bounced = host={server_directory} port=5432 user={user}
[pgbouncer]
listen_addr =
listen_port = 6432
unix_socket_dir = {place}
auth_type = any
pool_mode = transaction
default_pool_size = {SESSIONS}
max_client_conn = 200
server_check_delay = 0
""",
        encoding="utf-8",
    )
    with (place / "log").open("wb") as log:
        as_account = {"user": account.uid, "group": account.gid, "extra_groups": []} if account.dropped else {}
        process = subprocess.Popen([PGBOUNCER, str(settings)], stdout=log, stderr=log, cwd="/", **as_account)
        url = f"postgresql://{user}@/bounced?host={place}&port=6432"
        try:
            _await(url, process, place / "log")
            yield url
        finally:
            process.terminate()
            process.wait(30)


def _await(url: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
            return
        except psycopg.OperationalError:
            assert process.poll() is None and time.monotonic() < deadline, log.read_text()
            time.sleep(0.05)


@pytest.fixture(scope="session")
def ws(bouncer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """A workspace behind it: migrations have run there, too."""
    root = tmp_path_factory.mktemp("bounced")
    with lakeward.open(root / "home", database_url=bouncer, warehouse=root / "warehouse") as workspace:
        yield workspace
