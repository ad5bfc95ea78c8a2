"""A project with model functions, and pipelines that predict with them, on either arm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import lakeward
from lakeward.pipelines.models.registered import ModelVersion
from lakeward.pipelines.project import Project, load_project

YAML = """\
pipeline: p
nodes:
  rows: {{source: main.raw.rows}}
  few: {{transform: "select * from rows where {where}"}}
  scored: {{model: {{input: few, model: {model}, features: {features}, outputs: {outputs}, batch_rows: {batch_rows}}}}}
outputs:
  - {{dataset: main.m.out, from: scored, strategy: {strategy}, primary_key: [id], arm: {arm}, allow_empty: true}}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """An empty project folder."""
    made = tmp_path / "project"
    (made / "pipelines").mkdir(parents=True)
    (made / "models").mkdir()
    (made / "lakeward.toml").touch()
    return made


@pytest.fixture(params=["postgres", "iceberg"])
def arm(request: pytest.FixtureRequest) -> str:
    """The arm of the source; the output is on the other one."""
    return str(request.param)


@pytest.fixture
def rows(workspace: lakeward.Workspace, arm: str) -> lakeward.Dataset:
    """The source: an id, a number that may be null, and a text."""
    columns = {"id": "long", "v": "double", "t": "string"}
    return workspace.create_dataset("main.raw.rows", columns, ["id"], arm=arm)


@pytest.fixture
def add(workspace: lakeward.Workspace, root: Path) -> Callable[..., ModelVersion]:
    """Writes a function `f` into the project and registers it: features id and v, one output y of a type."""

    def added(
        body: str, outputs: str = "y:double", features: str = "id:long,v:double", name: str = "m"
    ) -> ModelVersion:
        (root / "models" / "m.py").write_text(body)
        return workspace.add_model("m:f", name, features.split(","), outputs.split(","), root).version

    return added


@pytest.fixture
def project(root: Path) -> Callable[[str], Project]:
    """Writes the one pipeline of the project."""

    def written(text: str) -> Project:
        (root / "pipelines" / "p.yml").write_text(text)
        return load_project(root)

    return written


@pytest.fixture
def build(
    workspace: lakeward.Workspace, project: Callable[[str], Project], arm: str, rows: lakeward.Dataset
) -> Iterator[Callable[..., lakeward.Dataset]]:
    """Applies the pipeline, builds it in full and returns its dataset, which is on the other arm than the source."""

    def built(**change: Any) -> lakeward.Dataset:
        facts = {
            "model": "m@1",
            "features": "[id, v]",
            "outputs": "{y: double}",
            "where": "true",
            "batch_rows": 64,
            "strategy": "replace",
            "arm": "iceberg" if arm == "postgres" else "postgres",
        }
        workspace.pipelines.apply(project(YAML.format(**{**facts, **change})))
        workspace.build("p", full=True)
        return workspace.dataset("main.m.out")

    yield built
