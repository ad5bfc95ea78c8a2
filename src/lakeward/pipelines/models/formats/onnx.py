"""The format `onnx`: an ONNX graph (onnx.ai, Apache-2.0 specification), run by ONNX Runtime on the processor."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from lakeward.errors import ModelRefused, UsageError
from lakeward.pipelines.models.model_format import Declared, DeclaredOutput, Model, ModelFormat
from lakeward.pipelines.models.registered import Feature, ModelOutput, ModelVersion, Signature
from lakeward.types.logical import LogicalType

_TYPES = {
    "tensor(float)": "float",
    "tensor(double)": "double",
    "tensor(int32)": "int",
    "tensor(int64)": "long",
    "tensor(bool)": "boolean",
    "tensor(string)": "string",
}
_CHANCE = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Multinomial", "Bernoulli")
)


@dataclass(frozen=True)
class _Tensor:
    """An input or output: its element type as ONNX Runtime writes it, and its shape after the rows."""

    name: str
    type: str
    rows: object
    rest: tuple[object, ...]

    @classmethod
    def of(cls, value: Any) -> _Tensor:
        shape = list(value.shape or [])
        return cls(value.name, value.type, shape[0] if shape else 0, tuple(shape[1:]))

    @property
    def width(self) -> int:
        """How many columns it has; 0: that is not fixed, or it has more dimensions."""
        if len(self.rest) > 1:
            return 0
        width = self.rest[0] if self.rest else 1
        return width if isinstance(width, int) and width > 0 else 0


class Onnx(ModelFormat):
    """A graph of numbers without code. Needs `pip install 'lakeward[models]'`."""

    name: ClassVar[str] = "onnx"

    def recognises(self, content: bytes) -> bool:
        """See `ModelFormat.recognises`: all of it reads as a model with a graph and a version of its operators."""
        return bool(content) and _parsed(content) is not None

    def describe(self, content: bytes, declared: Declared) -> Signature:
        """See `ModelFormat.describe`."""
        if declared.entry:
            raise ModelRefused("an ONNX file has no parts that could be named", next_step="name the file alone")
        try:
            _check_graph(content)
            session = _session(content, 1)
            inputs = [_Tensor.of(each) for each in session.get_inputs()]
            outputs = [_Tensor.of(each) for each in session.get_outputs()]
        except UnicodeDecodeError as error:
            raise ModelRefused(f"a name in the file is no text: {error}", next_step="export the model again") from None
        return Signature(_features(inputs, declared), _outputs(outputs, declared))

    def load(self, content: bytes, version: ModelVersion, threads: int) -> Model:
        """See `ModelFormat.load`."""
        return graph_of(content, version.signature, threads)


def graph_of(content: bytes, signature: Signature, threads: int) -> OnnxGraph:
    """Return the model of a file that `describe` was content with."""
    _, runtime = _libraries()
    return OnnxGraph(_session(content, threads), signature, runtime.RunOptions())


class OnnxGraph:
    """A session of ONNX Runtime. A tensor has no null: rows with one are not given to it."""

    takes_nulls = False

    def __init__(self, session: Any, signature: Signature, options: Any) -> None:
        self._session = session
        self._options = options
        self._inputs = [_Tensor.of(each) for each in session.get_inputs()]
        self._outputs = signature.outputs
        self._fetched = list(dict.fromkeys(output.tensor or output.name for output in signature.outputs))

    def predict(self, features: pa.RecordBatch) -> Mapping[str, object]:
        """See `Model.predict`."""
        feed, start = {}, 0
        for tensor in self._inputs:
            columns = [_numpy(features.column(start + index)) for index in range(tensor.width)]
            start += tensor.width
            if not tensor.rest:
                feed[tensor.name] = columns[0]
            elif tensor.width == 1:
                feed[tensor.name] = columns[0].reshape(-1, 1)
            else:
                feed[tensor.name] = np.stack(columns, axis=1)
        fetched = dict(zip(self._fetched, self._session.run(self._fetched, feed, self._options), strict=True))
        return {output.name: _column(fetched[output.tensor or output.name], output.column) for output in self._outputs}

    def interrupt(self) -> None:
        """See `Model.interrupt`: before its next operator."""
        self._options.terminate = True


def _numpy(array: pa.Array) -> Any:
    text = pa.types.is_string(array.type)
    return np.array(array.to_pylist(), dtype=object) if text else array.to_numpy(zero_copy_only=False)


def _column(values: Any, column: int | None) -> Any:
    return values[:, column] if column is not None and values.ndim == 2 else values


def _libraries() -> tuple[Any, Any]:
    # When it is imported, ONNX Runtime makes ready to report its use to its makers, and leaves a file for that in the
    # temporary directory. What is computed here is nobody else's business.
    os.environ.setdefault("ORT_DISABLE_TELEMETRY", "1")
    try:
        import onnx
        import onnxruntime
    except ImportError as error:
        raise UsageError(
            f"ONNX models need packages that are not installed: {error}",
            next_step="pip install 'lakeward[models]'",
        ) from None
    return onnx, onnxruntime


def _parsed(content: bytes) -> Any:
    """Return the parsed model; None if the bytes are none. Parsing only fills structures, and reads no other file."""
    onnx, _ = _libraries()
    try:
        model = onnx.ModelProto.FromString(content)
    except importlib.import_module("google.protobuf.message").DecodeError:
        return None
    return model if model.ir_version > 0 and model.opset_import and len(model.graph.output) else None


def _check_graph(content: bytes) -> None:
    onnx, _ = _libraries()
    model = _parsed(content)
    for tensor in _tensors(model):
        if tensor.data_location == onnx.TensorProto.EXTERNAL or len(tensor.external_data):
            raise ModelRefused(
                f"the tensor {tensor.name!r} is kept in another file, which is not read",
                next_step="save the model with all of its data in one file",
            )
    for node in _nodes(model):
        if node.op_type in _CHANCE:
            raise ModelRefused(
                f"the operator {node.op_type} gives something else every time, so that no build could be repeated",
                next_step="export the model for inference, without it",
            )


def _graphs(graph: Any) -> Iterator[Any]:
    """Yield a graph and those inside its operators, without recursion: nesting can be of any depth."""
    waiting = [graph]
    while waiting:
        each = waiting.pop()
        yield each
        for node in each.node:
            for attribute in node.attribute:
                waiting += [attribute.g] if attribute.HasField("g") else []
                waiting += attribute.graphs


def _nodes(model: Any) -> Iterator[Any]:
    for graph in _graphs(model.graph):
        yield from graph.node
    for function in model.functions:
        yield from function.node
        for node in function.node:
            for attribute in node.attribute:
                for inner in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
                    for graph in _graphs(inner):
                        yield from graph.node


def _tensors(model: Any) -> Iterator[Any]:
    graphs = list(_graphs(model.graph))
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
    for node in _nodes(model):
        for attribute in node.attribute:
            yield from ([attribute.t] if attribute.HasField("t") else [])
            yield from attribute.tensors
            for sparse in [attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []:
                yield from (sparse.values, sparse.indices)


def _session(content: bytes, threads: int) -> Any:
    _, onnxruntime = _libraries()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    # Threads that wait would otherwise turn in circles, on the cores that the query needs.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    try:
        # Its fallback, for graphics cards, would print to standard output.
        return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"], enable_fallback=False)
    except Exception as error:
        # Its errors have no base of their own.
        raise ModelRefused(
            f"ONNX Runtime refuses the model: {str(error).strip()[:500]}",
            safe="nothing was written",
            next_step="export it again, for the version of ONNX Runtime that is installed",
        ) from error


def _features(inputs: Sequence[_Tensor], declared: Declared) -> tuple[Feature, ...]:
    found: list[Feature] = []
    for tensor in inputs:
        if tensor.type not in _TYPES or tensor.width == 0:
            raise ModelRefused(
                f"input {tensor.name!r} is {tensor.type} with the shape [rows, {_listed(tensor.rest)}]; an input is a "
                "column, or so many columns, of numbers, text or booleans",
                next_step="export the model with inputs of that kind",
            )
        if isinstance(tensor.rows, int):
            raise ModelRefused(
                f"input {tensor.name!r} takes exactly {tensor.rows} rows",
                next_step="export the model with a first dimension that is free (a dynamic axis)",
            )
        type_ = LogicalType(_TYPES[tensor.type])
        names = [tensor.name] if tensor.width == 1 else [f"{tensor.name}[{index}]" for index in range(tensor.width)]
        found += [Feature(name, type_) for name in names]
    if not declared.features:
        wide = next((tensor for tensor in inputs if tensor.width > 1), None)
        if wide is not None:
            raise ModelRefused(
                f"input {wide.name!r} has {wide.width} columns, and the file does not tell their names",
                next_step="name them in the model's order: --features amount,age",
            )
        return tuple(found)
    if len(declared.features) != len(found):
        raise ModelRefused(
            f"{len(declared.features)} features are named, and the model takes {len(found)}: "
            f"{_listed(each.name for each in found)}",
            next_step="name each of them, in the model's order",
        )
    named = []
    for (name, told), feature in zip(declared.features.items(), found, strict=True):
        if told is not None and told != feature.type:
            raise ModelRefused(
                f"feature {name!r} is {feature.type} in the model, and {told} is declared",
                next_step="leave the type out: the file tells it",
            )
        named.append(Feature(name, feature.type))
    return tuple(named)


def _outputs(outputs: Sequence[_Tensor], declared: Declared) -> tuple[ModelOutput, ...]:
    by_name = {tensor.name: tensor for tensor in outputs}
    wanted = declared.outputs or [DeclaredOutput(tensor.name) for tensor in outputs]
    found = []
    for output in wanted:
        tensor = by_name.get(output.tensor or output.name)
        if tensor is None:
            raise ModelRefused(
                f"output {output.tensor or output.name!r} is not in the model; there are {_listed(by_name)}",
                next_step="name them as in --outputs risk=probabilities[1]",
            )
        found.append(_output(output, tensor))
    return tuple(found)


def _output(output: DeclaredOutput, tensor: _Tensor) -> ModelOutput:
    if tensor.type not in _TYPES:
        way = "export it with options={'zipmap': False}" if "map(" in tensor.type else "export it as a tensor"
        raise ModelRefused(
            f"output {tensor.name!r} is a {tensor.type}, not a tensor of numbers, text or booleans",
            next_step=f"{way}, or leave it out: --outputs names those that are wanted",
        )
    # A width that is not fixed is looked at when there are rows.
    columns = tensor.width or (0 if tensor.rest else 1)
    if len(tensor.rest) > 1 or (output.column is None and columns > 1):
        raise ModelRefused(
            f"output {tensor.name!r} has the shape [rows, {_listed(tensor.rest)}], and a column is wanted",
            next_step=f"say which one: --outputs {output.name}={tensor.name}[0]",
        )
    if output.column is not None and (not tensor.rest or (columns and output.column >= columns)):
        raise ModelRefused(
            f"output {tensor.name!r} has no column {output.column}; it has {columns}",
            next_step=f"count columns from 0: --outputs {output.name}={tensor.name}[0]",
        )
    type_ = LogicalType(_TYPES[tensor.type])
    if output.type is not None and output.type != type_:
        raise ModelRefused(
            f"output {output.name!r} is {type_} in the model, and {output.type} is declared",
            next_step="leave the type out: the file tells it; a node may widen it",
        )
    renamed = tensor.name if tensor.name != output.name else None
    return ModelOutput(output.name, type_, renamed, output.column)


def _listed(things: Iterable[object]) -> str:
    return ", ".join(str(each) for each in things)
