"""A pickle is taken if its format, its hash and the permission are all told; it then runs in a process of its own."""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sklearn.linear_model import LogisticRegression

import lakeward
from lakeward.errors import ComputeError, ModelRefused, UsageError
from lakeward.pipelines.models.registered import ModelVersion

OUTPUTS = ["y:double=predict_proba[1]"]


class Running:
    """Becomes what an expression gives, where it is unpickled."""

    def __init__(self, expression: str) -> None:
        self.expression = expression

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return eval, (self.expression,)


def predicting(body: str) -> bytes:
    """Return a pickle of an object whose `predict` gives an expression of a data frame `f`."""
    return pickle.dumps(Running(f"type('M', (), {{'predict': lambda self, f: {body}}})()"))


@pytest.fixture
def take(workspace: lakeward.Workspace, tmp_path: Path) -> Callable[..., ModelVersion]:
    """Registers a pickle with all that it needs."""

    def taken(content: bytes, outputs: list[str] | None = None) -> ModelVersion:
        (tmp_path / "m.pkl").write_bytes(content)
        permit: dict[str, Any] = {
            "format": "pickle",
            "allow_pickle": True,
            "sha256": hashlib.sha256(content).hexdigest(),
        }
        features = ["id:long", "v:double"]
        return workspace.add_model(tmp_path / "m.pkl", "m", features, outputs or ["y:double"], **permit).version

    return taken


def test_all_of_it_has_to_be_told_and_adding_runs_nothing(workspace: lakeward.Workspace, tmp_path: Path) -> None:
    marker, file = tmp_path / "pwned", tmp_path / "m.onnx"
    file.write_bytes(pickle.dumps(Running(f"__import__('pathlib').Path({str(marker)!r}).touch()")))
    hashed = hashlib.sha256(file.read_bytes()).hexdigest()
    whole: dict[str, Any] = {"format": "pickle", "allow_pickle": True, "sha256": hashed}
    for lacking in whole:
        told = {key: value for key, value in whole.items() if key != lacking}
        with pytest.raises(UsageError, match="only with its format, its hash and --allow-pickle"):
            workspace.add_model(file, "m", ["a:long"], ["y:long"], **told)
    with pytest.raises(ModelRefused, match="a pickle, which can run any program") as raised:
        workspace.add_model(file, "m", ["a:long"], ["y:long"], sha256=hashed)
    assert "--format pickle --allow-pickle --sha256 HEX" in (raised.value.next_step or "")
    with pytest.raises(ModelRefused, match=f"has the sha256 {hashed}, and {'0' * 64} was told"):
        workspace.add_model(file, "m", ["a:long"], ["y:long"], **{**whole, "sha256": "0" * 64})
    with pytest.raises(ModelRefused, match="does not tell its features"):
        workspace.add_model(file, "m", **whole)
    assert workspace.models() == []
    assert workspace.add_model(file, "m", ["a:long"], ["y:long"], **whole).version.format == "pickle"
    assert not marker.exists()
    text = tmp_path / "text.pkl"
    text.write_text("plain words")
    with pytest.raises(ModelRefused, match="is text, and no pickle"):
        workspace.add_model(
            text, "m", ["a:long"], ["y:long"], **{**whole, "sha256": hashlib.sha256(b"plain words").hexdigest()}
        )


@pytest.mark.parametrize("arm", ["iceberg"])
def test_it_predicts_what_it_does_here(
    rows: lakeward.Dataset, take: Callable[..., ModelVersion], build: Callable[..., lakeward.Dataset]
) -> None:
    rows.write([{"id": each, "v": float(each % 7), "t": ""} for each in range(150)])
    features = [[each, float(each % 7)] for each in range(150)]
    model = LogisticRegression(max_iter=1000).fit(features, [each % 7 > 3 for each in range(150)])
    take(pickle.dumps(model), OUTPUTS)
    found = build().to_arrow().sort_by("id")["y"].to_pylist()
    assert found == pytest.approx(model.predict_proba(features)[:, 1].tolist())


@pytest.mark.parametrize("arm", ["postgres"])
def test_it_sees_no_environment_and_what_it_does_wrong_is_told(
    rows: lakeward.Dataset,
    take: Callable[..., ModelVersion],
    build: Callable[..., lakeward.Dataset],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows.write([{"id": 1, "v": 1.0, "t": ""}])
    monkeypatch.setenv("LAKEWARD_DATABASE_URL", "postgresql://secret")
    secret = "float('LAKEWARD_DATABASE_URL' in __import__('os').environ)"
    here = f"float({os.getpid()} == __import__('os').getpid())"
    take(predicting(f"[print('noise') or {secret} + {here}]"))
    assert build(model="m@1").to_arrow()["y"].to_pylist() == [0.0]
    wrong = {
        "1 / 0": "the model raised PickledModelFailed: ZeroDivisionError: division by zero",
        "__import__('os')._exit(3)": "its process ended, with exit code 3",
    }
    for number, (body, says) in enumerate(wrong.items(), start=2):
        take(predicting(body))
        with pytest.raises(ComputeError, match=says):
            build(model=f"m@{number}")
    take(pickle.dumps(Running("1 / 0")))
    with pytest.raises(ModelRefused, match=r"model m@4 .* can't be loaded: ZeroDivisionError"):
        build(model="m@4")
