"""What every test may use: Hypothesis profiles, a seed that replays a failure, and directories with short paths."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest
from hypothesis import HealthCheck, settings
from psycopg import sql

import lakeward
from lakeward.control.embedded import EmbeddedPostgres

# New examples on every run, so that CI goes on searching; a failure prints the blob that replays it. No deadline: the
# first example of a test may start a database, and two busy cores say nothing about our code.
# Tests look at what dead processes left before they let anybody tidy it up.
os.environ["LAKEWARD_LEDGER__RECOVER_AT_START"] = "false"

settings.register_profile("dev", print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=False, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    """A random generator of its own for this test. A failure prints the seed; `LAKEWARD_TEST_SEED` replays it."""
    seed = int(os.environ.get("LAKEWARD_TEST_SEED") or random.SystemRandom().randrange(2**32))
    # Pytest shows captured output of failing tests only.
    print(f"replay with: LAKEWARD_TEST_SEED={seed} make test ARGS='{request.node.nodeid}'")
    return random.Random(seed)


@pytest.fixture(scope="session")
def short_root() -> Iterator[Path]:
    """One directory for the whole session, with a short path: a Unix socket's may have 107 bytes, pytest's are longer.

    Others may pass through it (0755), since a Postgres that root starts runs as another user. What lies inside is
    private by its own modes.
    """
    parent = Path("/tmp")
    if not os.access(parent, os.W_OK | os.X_OK):
        parent = Path(tempfile.gettempdir())
    root = Path(tempfile.mkdtemp(prefix="lw-", dir=parent))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture
def short_tmp(short_root: Path) -> Path:
    """An empty directory with a short path for one test."""
    path = Path(tempfile.mkdtemp(dir=short_root))
    path.chmod(0o755)
    return path


@pytest.fixture(scope="session")
def postgres(short_root: Path) -> Iterator[EmbeddedPostgres]:
    """The embedded server that this session's tests share; it stops after the last of them."""
    with EmbeddedPostgres.acquire(short_root / "postgres", short_root / "cache") as server:
        yield server


@pytest.fixture
def new_database(postgres: EmbeddedPostgres) -> Callable[[], str]:
    """Makes empty databases; each call returns another one's libpq URL."""

    def make() -> str:
        name = f"test_{random.SystemRandom().randrange(2**48):012x}"
        with psycopg.connect(postgres.url, autocommit=True) as connection:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        return postgres.url.replace("/lakeward?", f"/{name}?", 1)

    return make


@pytest.fixture
def database_url(new_database: Callable[[], str]) -> str:
    """The libpq URL of an empty database."""
    return new_database()


@pytest.fixture
def workspace(database_url: str, tmp_path: Path) -> Iterator[lakeward.Workspace]:
    """An empty workspace on a database and a warehouse of its own."""
    with lakeward.open(tmp_path / "home", database_url=database_url, warehouse=tmp_path / "warehouse") as opened:
        yield opened
