"""Finding a project and reading its files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from lakeward.errors import SpecError
from lakeward.pipelines.project import Project, find_project, load_project

SQL = "-- pipeline: {0}\n-- sources: {{o: main.raw.o}}\n-- output: main.a.{0}\n-- strategy: replace\nselect * from o\n"
YAML = """
pipeline: {0}
nodes: {{o: {{source: main.raw.o}}}}
outputs: [{{dataset: main.a.{0}, from: o, strategy: replace}}]
"""


def test_files_of_every_kind_are_read_in_folders_too(tmp_path: Path) -> None:
    folder = tmp_path / "pipelines" / "deeper"
    folder.mkdir(parents=True)
    (tmp_path / "lakeward.toml").touch()
    (tmp_path / "pipelines" / "c.yml").write_text(YAML.format("c"))
    (folder / "a.yaml").write_bytes(b"\xef\xbb\xbf" + YAML.format("a").replace("\n", "\r\n").encode())
    (folder / "b.SQL").write_text(SQL.format("b"))
    (folder / "notes.md").write_text("not a pipeline")
    project = load_project(folder)
    assert project.root == tmp_path
    assert [(pipeline.name, pipeline.origin.file) for pipeline in project.pipelines] == [
        ("a", "pipelines/deeper/a.yaml"),
        ("b", "pipelines/deeper/b.SQL"),
        ("c", "pipelines/c.yml"),
    ]
    assert project.pipeline("b") is project.pipelines[1]
    assert project.pipeline("x") is None


def test_a_folder_that_is_no_project_is_told_so(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match="is no project") as raised:
        find_project(tmp_path / "missing")
    assert raised.value.next_step is not None


def test_a_project_without_pipelines_is_empty(tmp_path: Path) -> None:
    (tmp_path / "lakeward.toml").touch()
    assert load_project(tmp_path).pipelines == ()


def test_two_pipelines_of_one_name_are_refused_with_both_places(project: Callable[..., Project]) -> None:
    with pytest.raises(SpecError, match=r"b\.yml:2: pipeline 'Delays' is also in pipelines/a\.sql:1"):
        project(a_sql=SQL.format("delays"), b_yml=YAML.format("Delays"))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"pipeline: a\nnodes: \xff\n", "a.yml:2: the file is not UTF-8"),
        (b"pipeline: a\nnodes: \x00\n", "a.yml:2: the file has a NUL"),
        (b"#" * 4_000_001, "larger than"),
    ],
)
def test_files_that_are_not_text_are_refused(tmp_path: Path, data: bytes, says: str) -> None:
    (tmp_path / "lakeward.toml").touch()
    (tmp_path / "pipelines").mkdir()
    (tmp_path / "pipelines" / "a.yml").write_bytes(data)
    with pytest.raises(SpecError, match=says):
        load_project(tmp_path)
