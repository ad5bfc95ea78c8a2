"""A workspace, a dataset in it with two versions, and another engine that writes to its Iceberg table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.databases import WORKSPACE, made_database
from support.foreign_scene import Scene
from support.other_engine import Interruptions


@pytest.fixture(scope="session")
def interruptions() -> Interruptions:
    return Interruptions()


@pytest.fixture(scope="session")
def shared(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory, interruptions: Interruptions
) -> Iterator[lakeward.Workspace]:
    """A workspace for all tests of this directory."""
    url = made_database(postgres, WORKSPACE)
    root = tmp_path_factory.mktemp("foreign")
    opening = lakeward.open(root / "home", database_url=url, warehouse=root / "warehouse", faults=interruptions)
    with opening as workspace:
        yield workspace


@pytest.fixture
def scene(shared: lakeward.Workspace, interruptions: Interruptions) -> Scene:
    """A dataset of a name of its own."""
    return Scene.make(shared, interruptions)
