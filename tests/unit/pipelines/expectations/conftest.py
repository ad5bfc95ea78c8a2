"""A pipeline of which something is expected, on either arm."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import lakeward
from lakeward.pipelines.project import Project
from support.expectations import SOURCE, Scene


@pytest.fixture(params=["postgres", "iceberg"])
def arm(request: pytest.FixtureRequest) -> str:
    """The arm of the source and the output."""
    return str(request.param)


@pytest.fixture
def scene(workspace: lakeward.Workspace, project: Callable[..., Project], arm: str) -> Scene:
    """Three rows, and nothing applied yet."""
    workspace.create_dataset(SOURCE, {"id": "long", "v": "double", "status": "string"}, arm=arm)
    made = Scene(workspace, project, arm)
    made.write((1, 1.0, "new"), (2, 2.0, "sent"), (3, 3.0, None))
    return made
