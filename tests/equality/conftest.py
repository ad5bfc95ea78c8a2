"""One workspace for all plays, with the model that one of them needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

import lakeward
from lakeward.control.embedded import EmbeddedPostgres
from support.databases import WORKSPACE, made_database
from support.onnx_models import linear
from support.pipeline_oracle import STRATEGIES, NodeCase
from support.pipeline_play import Play, Switch


@pytest.fixture(scope="module")
def play(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Play]]:
    """Begins a play of a case."""
    root, switch = tmp_path_factory.mktemp("equality"), Switch()
    (root / "twice.onnx").write_bytes(linear([2.0], 1.0))
    with lakeward.open(
        root / "home", database_url=made_database(postgres, WORKSPACE), warehouse=root / "warehouse", faults=switch
    ) as workspace:
        workspace.add_model(root / "twice.onnx", "twice", ["v"])

        def begin(case: NodeCase, strategies: tuple[str, ...] = STRATEGIES) -> Play:
            return Play(workspace, switch, tmp_path_factory.mktemp("project"), case, strategies)

        yield begin
