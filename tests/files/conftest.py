"""A workspace for all tests of files, and a folder for each."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.databases import WORKSPACE, made_database

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def files_url(postgres: EmbeddedPostgres) -> str:
    """The workspace's own database."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def files_warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The workspace's warehouse."""
    return tmp_path_factory.mktemp("files") / "warehouse"


@pytest.fixture(scope="session")
def ws(files_url: str, files_warehouse: Path) -> Iterator[lakeward.Workspace]:
    """The workspace."""
    with lakeward.open(database_url=files_url, warehouse=files_warehouse) as workspace:
        yield workspace


@pytest.fixture
def name() -> str:
    """The name of a dataset, or of a source, that no other test has."""
    return f"t{next(_numbers)}"


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str, str], Path]:
    """Writes a file of the test's folder, whose own folders are made, and returns it."""

    def to(place: str, text: str) -> Path:
        file = tmp_path / place
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    return to
