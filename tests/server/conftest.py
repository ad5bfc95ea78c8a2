"""A real server for tests: `lakeward serve` as a process of its own, over a workspace that the tests can look into."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import httpx
import pytest

import lakeward
from support.commands import process

COLUMNS = {"id": "long", "note": "string", "amount": "decimal(18,4)"}
_numbers = count(1)


@dataclass(frozen=True)
class Served:
    """A running server.

    Args:
        home: of its workspace.
        url: where it is.
        process: of the command.
    """

    home: Path
    url: str
    process: subprocess.Popen[str]

    def client(self) -> httpx.Client:
        """Return a client whose paths begin behind `/api/v1`."""
        return httpx.Client(base_url=f"{self.url}/api/v1", timeout=60)

    def stop(self, number: int = signal.SIGTERM) -> int:
        """End it, and return its exit code."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def serving(home: Path, *options: str) -> Iterator[Served]:
    """Run the command until the block ends."""
    command = process("serve", "--home", home, "--port", "0", "--no-worker", "--output", "json", *options)
    try:
        assert command.stdout is not None and command.stderr is not None
        lines = []
        for line in command.stdout:
            lines.append(line)
            if line.rstrip() == "}":
                break
        assert lines, command.stderr.read()
        yield Served(home, json.loads("".join(lines))["url"], command)
    finally:
        command.kill()
        command.communicate()


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, short_root: Path) -> Path:
    """A home with a short path, for the socket of its server."""
    return short_root / f"served{next(_numbers)}"


@pytest.fixture(scope="module")
def workspace(home: Path) -> Iterator[lakeward.Workspace]:
    """The workspace that is served, opened here as well."""
    with lakeward.open(home) as opened:
        yield opened


@pytest.fixture(scope="module")
def served(workspace: lakeward.Workspace, home: Path) -> Iterator[Served]:
    """The server of the module's tests."""
    with serving(home) as running:
        yield running


@pytest.fixture(scope="module")
def serving_home(workspace: lakeward.Workspace, home: Path) -> Callable[[], AbstractContextManager[Served]]:
    """Starts a server of the module's workspace, to be ended by the test."""
    return lambda: serving(home)


@pytest.fixture(scope="module")
def client(served: Served) -> Iterator[httpx.Client]:
    """A client of it."""
    with served.client() as opened:
        yield opened


@pytest.fixture
def orders(workspace: lakeward.Workspace) -> Callable[..., lakeward.Dataset]:
    """Makes a dataset of its own for a test."""

    def make(arm: str = "postgres", **columns: str) -> lakeward.Dataset:
        return workspace.create_dataset(f"main.served.d{next(_numbers)}", columns or COLUMNS, ["id"], arm=arm)

    return make
