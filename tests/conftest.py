"""What every test may use: Hypothesis profiles, a seed that replays a failure, and directories with short paths."""

from __future__ import annotations

import gc
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.covering import MARK, take_turn, without_others
from support.databases import WORKSPACE, drop_database, made_database, make_template, never_wait_for_the_disk

# Where the server of the tests is kept, if so many bytes are free: each worker's takes up to 1 GiB.
MEMORY = Path("/dev/shm")
ENOUGH_MEMORY = 8 << 30

# New examples on every run, so that CI goes on searching; a failure prints the blob that replays it. No deadline: the
# first example of a test may start a database, and two busy cores say nothing about our code.
# Tests look at what dead processes left before they let anybody tidy it up.
os.environ["LAKEWARD_LEDGER__RECOVER_AT_START"] = "false"

settings.register_profile("dev", print_blob=True, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("dev"), derandomize=False, database=None)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_configure(config: pytest.Config) -> None:
    take_turn()
    config.addinivalue_line("markers", f"{MARK}(*together): play the cells in which the values of these meet")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.write_line(take_turn())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Play of large grids what covers them."""
    items[:], left_out = without_others(items)
    if left_out:
        config.hook.pytest_deselected(items=left_out)


def pytest_collection_finish() -> None:
    """What was collected and imported stays to the end: it is not looked through for garbage again and again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(10_000)


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


@contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """A directory in memory for what is written again and again, where there is enough; else the other one."""
    if not MEMORY.is_dir() or shutil.disk_usage(MEMORY).free < ENOUGH_MEMORY or not os.access(MEMORY, os.W_OK):
        yield otherwise
        return
    root = Path(tempfile.mkdtemp(prefix="lw-", dir=MEMORY))
    root.chmod(0o755)
    yield root
    shutil.rmtree(root, ignore_errors=True)


@pytest.fixture(scope="session")
def postgres(short_root: Path) -> Iterator[EmbeddedPostgres]:
    """The embedded server that this session's tests share; it stops after the last of them."""
    with in_memory(short_root) as root, EmbeddedPostgres.acquire(root / "postgres", short_root / "cache") as server:
        never_wait_for_the_disk(server.url)
        make_template(server.url)
        yield server


@pytest.fixture
def new_database(postgres: EmbeddedPostgres) -> Iterator[Callable[..., str]]:
    """Makes empty databases, which are gone after the test; each call returns another one's libpq URL."""
    made: list[str] = []

    def make(template: str = "template1") -> str:
        made.append(made_database(postgres, template))
        return made[-1]

    yield make
    for url in made:
        drop_database(postgres.url, url)


@pytest.fixture
def database_url(request: pytest.FixtureRequest, new_database: Callable[..., str]) -> str:
    """The libpq URL of an empty database; of one with its tables where a fixture opens a workspace there."""
    return new_database(WORKSPACE) if {"workspace", "place"} & {*request.fixturenames} else new_database()


@pytest.fixture
def workspace(database_url: str, tmp_path: Path) -> Iterator[lakeward.Workspace]:
    """An empty workspace on a database and a warehouse of its own."""
    with lakeward.open(tmp_path / "home", database_url=database_url, warehouse=tmp_path / "warehouse") as opened:
        yield opened
