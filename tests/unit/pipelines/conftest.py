"""A catalog and a project folder for tests that need no Postgres; and Ctrl-C for those that press it."""

from __future__ import annotations

import difflib
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from lakeward.compute.engines.duckdb import DuckDBEngine
from lakeward.errors import UnknownObject
from lakeward.pipelines.project import Project, load_project
from lakeward.types.schema import Schema


@dataclass(frozen=True)
class Known:
    """What a plan asks of a dataset."""

    id: int
    name: str
    schema: Schema
    arm: str = "postgres"
    head_version: int = 1


@dataclass
class Shelf:
    """A catalog of datasets in memory."""

    known: dict[str, Known] = field(default_factory=dict)

    def add(self, name: str, columns: dict[str, str], primary_key: list[str] | None = None, **facts: object) -> None:
        self.known[name] = Known(len(self.known) + 1, name, Schema.declare(columns, primary_key or []), **facts)  # type: ignore[arg-type]

    def find(self, name: str) -> Known | None:
        return self.known.get(name)

    def check_unused(self, name: str) -> None:
        """No name was ever another one's."""

    def dataset(self, name: str) -> Known:
        if name in self.known:
            return self.known[name]
        near = difflib.get_close_matches(name, self.known, n=1)
        raise UnknownObject(f"unknown dataset {name}", next_step=f"did you mean {near[0]}?" if near else None)


@pytest.fixture
def shelf() -> Shelf:
    """Two raw datasets."""
    shelf = Shelf()
    shelf.add("main.raw.orders", {"id": "long", "customer_id": "long", "amount": "decimal(18,4)"}, ["id"])
    shelf.add("main.raw.customers", {"customer_id": "long", "name": "string"})
    return shelf


@pytest.fixture
def engine(tmp_path: Path) -> DuckDBEngine:
    return DuckDBEngine(temp_directory=tmp_path / "scratch", threads=1)


@pytest.fixture
def project(tmp_path: Path) -> Callable[..., Project]:
    """Writes a project of the given files (`a_yml` is `pipelines/a.yml`) in place of those before, and loads it."""
    root = tmp_path / "project"

    def write(**files: str) -> Project:
        folder = root / "pipelines"
        folder.mkdir(parents=True, exist_ok=True)
        (root / "lakeward.toml").touch()
        for old in folder.iterdir():
            old.unlink()
        for name, text in files.items():
            stem, _, suffix = name.rpartition("_")
            (folder / f"{stem}.{suffix}").write_text(text)
        return load_project(root)

    return write


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Lets Ctrl-C be heard, also where a shell has started the tests in the background and so had it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
