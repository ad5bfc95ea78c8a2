"""A home for one server, users in processes of their own, and a look at what runs."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from lakeward.control.embedded import EmbeddedPostgres
from lakeward.control.embedded.files import ServerFiles
from lakeward.control.embedded.postmaster import server_processes, stop
from postgres_probe import Processes, User


@pytest.fixture
def home(short_tmp: Path) -> Iterator[Path]:
    """A directory for a server, which does not exist yet. Nothing of the server is left behind."""
    path = short_tmp / "pg"
    yield path
    if path.exists():
        stop(ServerFiles.of(path))
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(scope="session")
def template(short_root: Path) -> Path:
    """A server's directory with a fresh data directory: creating one takes a second, copying it a tenth."""
    path = short_root / "template"
    EmbeddedPostgres.acquire(path).release()
    return path


@pytest.fixture
def make_home(template: Path) -> Callable[[Path], Path]:
    """Make a directory for a server that was used before and does not run."""

    def make(path: Path) -> Path:
        subprocess.run(["cp", "-a", template, path], check=True)
        return path

    return make


@pytest.fixture
def made_home(home: Path, make_home: Callable[[Path], Path]) -> Path:
    """A directory for a server that was used before and does not run."""
    return make_home(home)


@pytest.fixture
def user(home: Path) -> Iterator[Callable[..., User]]:
    """Start a process that uses the server at `home`."""
    started: list[User] = []

    def start(before: str = "", after: str = "") -> User:
        started.append(User(home, before, after))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def wait_until() -> Callable[..., None]:
    """Poll until a condition holds; fail when it does not come to hold."""

    def wait(condition: Callable[[], object], seconds: float = 60.0) -> None:
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, f"not within {seconds} seconds"
            time.sleep(0.02)

    return wait


@pytest.fixture
def processes(home: Path) -> Processes:
    """Return the live processes of the server at `home`."""
    return lambda: server_processes(ServerFiles.of(home)) if home.exists() else {}


@pytest.fixture
def watchers(home: Path) -> Callable[[], list[int]]:
    """Return the pids of the watchers of `home`."""

    def find() -> list[int]:
        listing = subprocess.run(["ps", "-axww", "-o", "pid=,command="], capture_output=True, text=True, check=True)
        rows = (line.split(None, 1) for line in listing.stdout.splitlines())
        return [
            int(pid) for pid, command in rows if "embedded.watcher import watch" in command and str(home) in command
        ]

    return find
