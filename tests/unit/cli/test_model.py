"""`lakeward model`: what is added is listed, shown, and refused for what it is."""

from __future__ import annotations

import pickle
from pathlib import Path

from support.commands import Run
from support.onnx_models import linear


def test_a_model_is_added_listed_and_shown(run: Run, place: Path) -> None:
    (place / "risk.bin").write_bytes(linear([1.0, 2.0]))
    ran = run("model", "add", "risk.bin", "--name", "churn", "--features", "amount,age", "--outputs", "risk=y")
    assert ran.code == 0 and "added churn@1: onnx" in ran.out and "gives risk: float" in ran.out
    again = run("model", "add", "risk.bin", "--name", "churn", "--features", "amount,age", "--outputs", "risk=y[0]")
    assert "added churn@2" in again.out
    same = run(
        *("model", "add", "risk.bin", "--name", "churn", "--features", "amount", "--features", "age"),
        *("--outputs", "risk=y[0]", "--output", "json"),
    )
    assert (same.document["new"], same.document["reference"]) == (False, "churn@2")
    listed = run("model", "list", "--output", "json").document["models"]
    assert [each["reference"] for each in listed] == ["churn@1", "churn@2"]
    assert "churn@2" in run("model", "list").out
    shown = run("model", "show", "churn@1")
    node = "{model: {input: NODE, model: churn@1, features: [amount, age], outputs: {risk: float}}}"
    assert f"in a pipeline: {node}" in shown.out
    assert run("model", "show", "churn", "--output", "json").document["version"] == 2


def test_a_function_is_added_from_any_folder_of_the_project(run: Run, place: Path) -> None:
    (place / "lakeward.toml").touch()
    (place / "models" / "deep").mkdir(parents=True)
    (place / "models" / "deep" / "scoring.py").write_text("def predict(batch):\n    return batch['a']\n")
    ran = run(
        *("model", "add", "deep.scoring:predict", "--name", "m", "--project", place / "models"),
        *("--features", "a:decimal(18,4)", "--outputs", "y:decimal(18,4)", "--output", "json"),
    )
    assert ran.document["features"] == [{"name": "a", "type": "decimal(18,4)"}]
    assert (ran.document["origin"], ran.document["entry"]) == ("models/deep/scoring.py", "predict")


def test_what_is_no_model_is_called_what_it_is(run: Run, place: Path) -> None:
    (place / "m.onnx").write_bytes(pickle.dumps({"a": 1}))
    ran = run("model", "add", "m.onnx", "--name", "m", "--output", "json")
    assert ran.code == 2
    assert ran.document["error"] == "ModelRefused"
    assert "m.onnx is a pickle, which can run any program when it is loaded" in ran.document["message"]
    empty = run("model", "list")
    assert empty.code == 0 and "no models yet" in empty.out
    assert run("model", "show", "m").code == 2
