"""Predictions of a pipeline's model node against ONNX Runtime called directly with the same rows."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import onnxruntime
import pyarrow as pa
from measure import in_fresh_process, table
from onnx import TensorProto, helper, numpy_helper

import lakeward
from lakeward.pipelines.models.binding import BoundModel
from lakeward.pipelines.models.declaring import declare_model
from lakeward.pipelines.models.formats.onnx import Onnx
from lakeward.pipelines.models.predict import Prediction
from lakeward.pipelines.models.registered import ModelVersion

ROWS = 1_000_000
BATCH = 65_536
FEATURES = [f"f{number}" for number in range(8)]
REPEATS = 40
LIMIT = 1.5
THREADS = 2

PIPELINE = """
pipeline: scoring
nodes:
  rows: {{source: bench.main.rows}}
  scored: {{model: {{input: rows, model: m@1, features: [{features}], outputs: {{y: float}}}}}}
outputs:
  - {{dataset: bench.main.scored, from: scored, arm: iceberg, strategy: replace, primary_key: [id]}}
"""


def network(hidden: int) -> bytes:
    """Return a network of two layers: 8 features, so many hidden units, one output."""
    random = np.random.default_rng(1)
    shapes = {"w1": (len(FEATURES), hidden), "b1": (hidden,), "w2": (hidden, 1), "b2": (1,)}
    tensors = [numpy_helper.from_array(random.normal(size=shape).astype("f4"), name) for name, shape in shapes.items()]
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["h"]),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "w2", "b2"], ["o"]),
        helper.make_node("Sigmoid", ["o"], ["y"]),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", len(FEATURES)])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 1])]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    return bytes(made.SerializeToString())


def rows() -> pa.Table:
    """Return the rows: an id and the features, as doubles."""
    random = np.random.default_rng(2)
    columns = {name: random.normal(size=ROWS) for name in FEATURES}
    return pa.table({"id": np.arange(ROWS), **columns})


def best(*works: Callable[[], object]) -> list[float]:
    """Return the shortest time of each, measured in turn, so that a busy machine is busy for all of them."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(REPEATS):
        for work, each in zip(works, times, strict=True):
            started = time.perf_counter()
            work()
            each.append(time.perf_counter() - started)
    return [min(each) for each in times]


def node_of(content: bytes) -> Prediction:
    """Return what a model node predicts with."""
    declared = declare_model(FEATURES, [])
    signature = Onnx().describe(content, declared)
    version = ModelVersion("m", 1, "onnx", "", len(content), "", "", signature, datetime.now(UTC), "bench")
    features = tuple((feature, feature.name) for feature in signature.features)
    outputs = tuple((output, output.type) for output in signature.outputs)
    bound = BoundModel("scored", version, features, outputs, BATCH)
    return Prediction(bound, Onnx().load(content, version, THREADS))


def case(hidden: int) -> dict[str, object]:
    """Predict all rows directly, and through the node, with one model."""
    content, batches = network(hidden), rows().to_batches(BATCH)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])

    def direct() -> None:
        for batch in batches:
            columns = [batch.column(name).to_numpy().astype("f4") for name in FEATURES]
            session.run(None, {"x": np.stack(columns, axis=1)})

    prediction = node_of(content)
    reference, seconds = best(direct, lambda: sum(batch.num_rows for batch in prediction.over(batches)))
    return {
        "hidden units": hidden,
        "direct ms": reference * 1000,
        "node ms": seconds * 1000,
        "ratio": seconds / reference,
        "limit": LIMIT,
        "build s": build(content),
    }


def build(content: bytes) -> float:
    """Return the time of a whole build with the node, from one Iceberg table into another one."""
    with tempfile.TemporaryDirectory(prefix="lw-") as scratch:
        project = Path(scratch) / "project"
        (project / "pipelines").mkdir(parents=True)
        (project / "lakeward.toml").touch()
        (project / "m.onnx").write_bytes(content)
        text = PIPELINE.format(features=", ".join(FEATURES))
        (project / "pipelines" / "scoring.yml").write_text(text, encoding="utf-8")
        with lakeward.open(Path(scratch) / "home") as workspace:
            columns = {"id": "long", **dict.fromkeys(FEATURES, "double")}
            workspace.create_dataset("bench.main.rows", columns, ["id"], arm="iceberg").write(rows())
            workspace.add_model(project / "m.onnx", "m", FEATURES)
            workspace.apply(project)
            started = time.perf_counter()
            workspace.build("scoring")
            return time.perf_counter() - started


def main() -> str:
    """Run a small and a larger network and return the table."""
    title = f"Predictions of {ROWS:,} rows of {len(FEATURES)} doubles, batches of {BATCH:,}"
    return table(title, [in_fresh_process(case, hidden) for hidden in (8, 64)])


if __name__ == "__main__":
    print(main())
