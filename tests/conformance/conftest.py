"""Every arm there is, one after the other: the suite in this directory runs over each of them.

What an arm can't do is declared in `GAPS` with the error that it raises instead; a test that meets a gap checks that.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.discovery import discover
from lakeward.errors import StorageError, UnknownObject
from lakeward.storage import arms
from lakeward.storage.arm import StorageArm
from lakeward.testing import InMemoryArm
from support.arms import ArmUnderTest
from support.databases import WORKSPACE, made_database

ARMS = (*discover(arms, StorageArm), InMemoryArm.name)

GAPS: dict[tuple[str, str], type[Exception]] = {
    # A route names a place that outlives the process.
    ("memory", "serves a dataset"): UnknownObject,
    ("memory", "outlives the workspace"): StorageError,
}


@pytest.fixture(scope="session")
def shared_url(postgres: EmbeddedPostgres) -> str:
    """A database for all tests of this directory."""
    return made_database(postgres, WORKSPACE)


@pytest.fixture(scope="session")
def shared(shared_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[lakeward.Workspace]:
    """A workspace for all tests of this directory, with the arm in memory besides the others."""
    root = tmp_path_factory.mktemp("conformance")
    with lakeward.open(
        root / "home", database_url=shared_url, warehouse=root / "warehouse", extra_arms=[InMemoryArm]
    ) as workspace:
        yield workspace


@pytest.fixture(params=ARMS)
def arm(request: pytest.FixtureRequest, shared: lakeward.Workspace) -> ArmUnderTest:
    """One arm after the other."""
    return ArmUnderTest(shared, request.param)


@pytest.fixture(params=[name for name in ARMS if name != InMemoryArm.name])
def lasting(request: pytest.FixtureRequest, shared: lakeward.Workspace) -> ArmUnderTest:
    """One arm after the other of those that can serve a dataset."""
    return ArmUnderTest(shared, request.param)


@pytest.fixture
def new_home(tmp_path: Path) -> Path:
    """A directory for a further workspace."""
    return tmp_path / "home"
