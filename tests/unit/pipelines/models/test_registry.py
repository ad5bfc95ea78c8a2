"""Versions of a model only ever come on top; the same again is no new one."""

from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

import lakeward
from lakeward.errors import InvalidName, ModelRefused, NameTaken, UnknownObject
from support.onnx_models import linear


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A model with two features."""
    path = tmp_path / "m.onnx"
    path.write_bytes(linear([1.0, 2.0]))
    return path


def test_versions_count_up_and_tell_what_they_are(workspace: lakeward.Workspace, file: Path) -> None:
    first = workspace.add_model(file, "churn", ["a", "b"])
    again = workspace.add_model(file, "churn", ["a", "b"])
    renamed = workspace.add_model(file, "churn", ["a", "c"])
    assert [(each.version.version, each.new) for each in (first, again, renamed)] == [(1, True), (1, False), (2, True)]
    assert first.version.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert first.version.to_json() | {"added_at": None, "added_by": None, "sha256": None} == {
        "name": "churn",
        "version": 1,
        "reference": "churn@1",
        "format": "onnx",
        "sha256": None,
        "size": len(file.read_bytes()),
        "entry": "",
        "origin": "m.onnx",
        "features": [{"name": "a", "type": "float"}, {"name": "b", "type": "float"}],
        "outputs": [{"name": "y", "type": "float", "tensor": None, "column": None}],
        "added_at": None,
        "added_by": None,
        "build_id": None,
        "datasets": [],
    }
    assert [each.reference for each in workspace.models("churn")] == ["churn@1", "churn@2"]
    assert workspace.model("churn").version == 2
    assert workspace.model("churn@1") == first.version
    # What stood before an older version is back is the older one, and its file is kept once.
    assert workspace.add_model(file, "churn", ["a", "b"]).version.version == 3
    with workspace.database.driver() as connection:
        assert connection.execute("SELECT count(*) AS n FROM lakeward.model_files").fetchone() == (1,)


def test_several_writers_get_versions_of_their_own(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    for number in range(6):
        (tmp_path / f"{number}.onnx").write_bytes(linear([float(number)]))
    threads = [
        threading.Thread(target=workspace.add_model, args=(tmp_path / f"{number}.onnx", "m")) for number in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [each.version for each in workspace.models("m")] == [1, 2, 3, 4, 5, 6]
    assert len({each.sha256 for each in workspace.models("m")}) == 6


def test_wrong_names_are_refused(workspace: lakeward.Workspace, file: Path) -> None:
    workspace.add_model(file, "Risiko (Köln)", ["a", "b"])
    assert workspace.model("Risiko (Köln)@1").name == "Risiko (Köln)"
    with pytest.raises(NameTaken, match="differ only in case"):
        workspace.add_model(file, "risiko (köln)", ["a", "b"])
    for name in ("", " ", "a@1", "a\n", "x" * 300):
        with pytest.raises(InvalidName):
            workspace.add_model(file, name, ["a", "b"])
    with pytest.raises(UnknownObject, match="unknown model 'x'; there are Risiko"):
        workspace.model("x")
    with pytest.raises(UnknownObject, match="has no version 9; its newest is 1"):
        workspace.model("Risiko (Köln)@9")
    with pytest.raises(UnknownObject, match="can't be read: No such file"):
        workspace.add_model(file.parent / "nothing.onnx", "m")


@pytest.mark.parametrize(
    ("features", "outputs", "says"),
    [
        ([], [], "has 2 columns, and the file does not tell their names"),
        (["a"], [], "1 features are named, and the model takes 2"),
        (["a", "A"], [], "two features are called 'a', or differ only in case"),
        (["a:double", "b"], [], "feature 'a' is float in the model, and double is declared"),
        (["a", "b"], ["z"], "output 'z' is not in the model; there are y"),
        (["a", "b"], ["z=y[1]"], "output 'y' has no column 1; it has 1"),
        (["a", "b"], ["z:long=y"], "output 'z' is float in the model, and long is declared"),
        (["a", "b"], ["y", "Y=y"], "two outputs are called 'y'"),
    ],
)
def test_wrong_declarations_are_refused(
    workspace: lakeward.Workspace, file: Path, features: list[str], outputs: list[str], says: str
) -> None:
    with pytest.raises(ModelRefused) as raised:
        workspace.add_model(file, "m", features, outputs)
    assert says in raised.value.message
    assert workspace.models() == []


@pytest.mark.parametrize(
    ("body", "features", "outputs", "says"),
    [
        ("def g(batch): ...", ["a:long"], ["y:long"], "has no function 'f'; it has g"),
        ("def f(", ["a:long"], ["y:long"], "the file is no Python"),
        ("def f(batch): ...", [], ["y:long"], "does not tell its features and outputs"),
        ("def f(batch): ...", ["a"], ["y:long"], "feature 'a' has no type"),
        ("def f(batch): ...", ["a:long"], ["y"], "output 'y' is a name and a type"),
        ("def f(batch): ...", ["__source_row_index__:double"], ["y:long"], "feature '__source_row_index__' is a long"),
    ],
)
def test_wrong_functions_are_refused(
    workspace: lakeward.Workspace, root: Path, body: str, features: list[str], outputs: list[str], says: str
) -> None:
    (root / "models" / "m.py").write_text(body)
    with pytest.raises(ModelRefused) as raised:
        workspace.add_model("m:f", "m", features, outputs, root)
    assert says in raised.value.message
