"""ONNX models: what a file tells, what goes in, what comes out, and what can't be used."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import lakeward
from lakeward.errors import ComputeError, ModelRefused
from lakeward.pipelines.models.declaring import declare_model
from lakeward.pipelines.models.formats.onnx import Onnx
from lakeward.pipelines.models.registered import Signature
from support.commands import environment
from support.onnx_models import linear, model_of


def described(content: bytes, features: list[str], outputs: list[str]) -> Signature:
    return Onnx().describe(content, declare_model(features, outputs))


def passing(kind: int, shape: list[Any], out_shape: list[Any] | None = None) -> bytes:
    """Return a model that gives what it gets."""
    graph = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", kind, shape)],
        [helper.make_tensor_value_info("y", kind, out_shape or shape)],
    )
    return model_of(graph)


def classifier() -> bytes:
    """Return a model with a label and probabilities as a map, as scikit-learn's converters make them by default."""
    nodes = [
        helper.make_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            domain="ai.onnx.ml",
            coefficients=[1.0, -1.0],
            intercepts=[0.0, 0.0],
            classlabels_ints=[0, 1],
            post_transform="SOFTMAX",
        ),
        helper.make_node("ZipMap", ["scores"], ["map"], domain="ai.onnx.ml", classlabels_int64s=[0, 1]),
    ]
    mapped = helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, 1])],
        [
            helper.make_tensor_value_info("label", TensorProto.INT64, [None]),
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, [None, 2]),
            helper.make_value_info("map", helper.make_sequence_type_proto(mapped)),
        ],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.ml", 3)]
    made = helper.make_model(graph, opset_imports=opsets, ir_version=9)
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("kind", "type_"),
    [
        (TensorProto.FLOAT, "float"),
        (TensorProto.DOUBLE, "double"),
        (TensorProto.INT32, "int"),
        (TensorProto.INT64, "long"),
        (TensorProto.BOOL, "boolean"),
        (TensorProto.STRING, "string"),
    ],
)
@pytest.mark.parametrize("shape", [["n"], ["n", 1]])
def test_a_file_tells_names_and_types(kind: int, type_: str, shape: list[Any]) -> None:
    signature = described(passing(kind, shape), [], [])
    assert [(each.name, str(each.type)) for each in signature.features] == [("x", type_)]
    assert [(each.name, str(each.type)) for each in signature.outputs] == [("y", type_)]


@pytest.mark.parametrize(
    ("content", "outputs", "says", "way"),
    [
        (passing(TensorProto.FLOAT, [1, 2]), [], "takes exactly 1 rows", "dynamic axis"),
        (passing(TensorProto.FLOAT, ["n", "k"]), [], "with the shape [rows, k]", None),
        (passing(TensorProto.FLOAT, ["n", 2, 2]), [], "with the shape [rows, 2, 2]", None),
        (passing(TensorProto.FLOAT16, ["n"]), [], "is tensor(float16)", None),
        (passing(TensorProto.FLOAT, ["n", 2]), [], "output 'y' has the shape [rows, 2]", "--outputs y=y[0]"),
        (classifier(), [], "output 'scores' has the shape [rows, 2]", "--outputs scores=scores[0]"),
        (classifier(), ["map"], "output 'map' is a seq(map(int64,tensor(float)))", "options={'zipmap': False}"),
        (b"\x08\x09", [], "refuses", None),
    ],
)
def test_what_can_not_be_used_is_refused_with_the_way_out(
    content: bytes, outputs: list[str], says: str, way: str | None
) -> None:
    if not Onnx().recognises(content):
        assert content == b"\x08\x09"
        return
    with pytest.raises(ModelRefused) as raised:
        described(content, ["a"] if b"Classifier" in content else [] if b"float16" in content else ["a", "b"], outputs)
    assert says in raised.value.message
    assert way is None or way in (raised.value.next_step or "")


def test_a_map_does_no_harm_that_nobody_asked_for() -> None:
    signature = described(classifier(), ["a"], ["label", "risk=scores[1]"])
    assert [(each.name, str(each.type), each.tensor, each.column) for each in signature.outputs] == [
        ("label", "long", None, None),
        ("risk", "float", "scores", 1),
    ]


@pytest.fixture
def onnx_build(
    workspace: lakeward.Workspace, build: Callable[..., lakeward.Dataset], tmp_path: Path
) -> Callable[..., lakeward.Dataset]:
    """Registers a file as `m` and builds with its newest version."""

    def built(content: bytes, named: list[str], outputs: list[str], **change: Any) -> lakeward.Dataset:
        (tmp_path / "m.onnx").write_bytes(content)
        version = workspace.add_model(tmp_path / "m.onnx", "m", named, outputs).version
        types = ", ".join(f"{each.name}: {each.type}" for each in version.signature.outputs)
        names = ", ".join(each.name for each in version.signature.features)
        return build(**{"model": version.reference, "outputs": f"{{{types}}}", "features": f"[{names}]", **change})

    return built


def test_a_build_predicts_as_onnx_runtime_does_for_any_size_of_batch(
    rows: lakeward.Dataset, onnx_build: Callable[..., lakeward.Dataset]
) -> None:
    ids = np.random.default_rng(5).permutation(np.arange(1, 1001))
    rows.write([{"id": int(each), "v": float(each) / 7, "t": ""} for each in ids])
    weights = np.array([0.25, 3.0], np.float32)
    found = {}
    for size in (1, 64, 10_000):
        out = onnx_build(linear([0.25, 3.0], 1.0), ["id", "v"], ["y"], batch_rows=size)
        found[size] = {row["id"]: (row["v"], row["y"]) for row in out.to_arrow().to_pylist()}
    assert found[1] == found[64] == found[10_000]
    expected = {int(each): np.float32(each) * weights[0] + np.float32(each / 7) * weights[1] + 1 for each in ids}
    assert {each: y for each, (_, y) in found[64].items()} == pytest.approx(expected, rel=1e-6)


def test_m03_null_stays_null_and_nan_stays_nan(
    rows: lakeward.Dataset, onnx_build: Callable[..., lakeward.Dataset]
) -> None:
    values = [1.5, None, math.nan, math.inf, None, -2.0]
    rows.write([{"id": each, "v": value, "t": ""} for each, value in enumerate(values, start=1)])
    out = onnx_build(passing(TensorProto.FLOAT, ["n", 1]), ["v"], ["y"], batch_rows=2)
    found = {row["id"]: row["y"] for row in out.to_arrow().to_pylist()}
    assert math.isnan(found.pop(3))
    assert found == {1: 1.5, 2: None, 4: math.inf, 5: None, 6: -2.0}


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"id": 2**24 + 1, "v": 1.0}, "feature 'id', column 'id': value 16777217 is not exact as float"),
        ({"id": 3, "v": 1e39}, "feature 'v', column 'v': value 1e+39 is too large for a float"),
    ],
)
def test_a_feature_never_becomes_another_number_unseen(
    rows: lakeward.Dataset, onnx_build: Callable[..., lakeward.Dataset], row: dict[str, Any], says: str
) -> None:
    rows.write([{"id": 1, "v": 1.0, "t": ""}, {**row, "t": ""}])
    with pytest.raises(ComputeError) as raised:
        onnx_build(linear([1.0, 1.0]), ["id", "v"], ["y"])
    assert says in raised.value.message
    assert f"row 2 (id={row['id']})" in raised.value.message


def test_text_goes_in_and_out(rows: lakeward.Dataset, onnx_build: Callable[..., lakeward.Dataset]) -> None:
    rows.write([{"id": 1, "v": 1.0, "t": "é"}, {"id": 2, "v": 1.0, "t": None}, {"id": 3, "v": 1.0, "t": ""}])
    out = onnx_build(passing(TensorProto.STRING, ["n"]), [], ["y"], features="{x: t}")
    assert {row["id"]: row["y"] for row in out.to_arrow().to_pylist()} == {1: "é", 2: None, 3: ""}


def test_onnx_runtime_reports_nothing_to_its_makers(tmp_path: Path) -> None:
    (tmp_path / "tmp").mkdir()
    program = "from lakeward.pipelines.models.formats import onnx; onnx._libraries()"
    variables = {**environment(), "TMPDIR": str(tmp_path / "tmp")}
    variables.pop("ORT_DISABLE_TELEMETRY", None)
    subprocess.run([sys.executable, "-c", program], env=variables, check=True)
    assert list((tmp_path / "tmp").iterdir()) == []
