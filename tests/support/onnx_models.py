"""Small ONNX models, made here."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def linear(weights: list[float], bias: float = 0.0, name: str = "x", output: str = "y", rows: Any = "n") -> bytes:
    """Return an ONNX model of one float input of so many columns: their weighted sum."""
    matrix = numpy_helper.from_array(np.array(weights, np.float32).reshape(-1, 1), "w")
    offset = numpy_helper.from_array(np.array([bias], np.float32), "b")
    graph = helper.make_graph(
        [helper.make_node("MatMul", [name, "w"], ["p"]), helper.make_node("Add", ["p", "b"], [output])],
        "g",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, len(weights)])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [rows, 1])],
        [matrix, offset],
    )
    return model_of(graph)


def model_of(graph: onnx.GraphProto, opset: int = 17) -> bytes:
    """Return a graph as a file."""
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    return bytes(made.SerializeToString())
