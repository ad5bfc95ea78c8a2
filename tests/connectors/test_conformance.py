"""The conformance suite over every connector that discovery finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from connectors.scenes import SCENES
from lakeward.control.embedded import EmbeddedPostgres
from lakeward.sources.known_connectors import known_connectors
from lakeward.testing.connector_conformance import ConnectorConformance, ConnectorScene
from support.databases import made_database


@pytest.fixture(scope="module")
def source_url(postgres: EmbeddedPostgres) -> str:
    """A database of somebody else."""
    return made_database(postgres)


class TestConnectors(ConnectorConformance):
    """The suite."""

    @pytest.fixture(params=sorted(known_connectors()))
    def scene(self, request: pytest.FixtureRequest, source_url: str, tmp_path: Path) -> ConnectorScene:
        """A fresh source."""
        assert request.param in SCENES, "a connector needs a scene in tests/connectors/scenes.py"
        return SCENES[request.param](source_url, tmp_path)
