"""A model that predicts for too long: ended where that is possible, and not asked again where it is not."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from onnx import TensorProto, helper

from lakeward.errors import TimeLimitExceeded
from lakeward.pipelines.models.binding import BoundModel
from lakeward.pipelines.models.declaring import declare_model
from lakeward.pipelines.models.formats.onnx import Onnx
from lakeward.pipelines.models.formats.pickle import Pickle
from lakeward.pipelines.models.formats.python_function import PythonFunction
from lakeward.pipelines.models.model_format import Declared, ModelFormat
from lakeward.pipelines.models.predict import Prediction
from lakeward.pipelines.models.registered import ModelVersion
from lakeward.pipelines.models.timed import TimedModel
from support.onnx_models import model_of

ROWS = pa.table({"x": pa.array([1.0, 2.0, 3.0])})
SLOW = """\
import time

def f(batch):
    end = time.monotonic() + 0.15
    while time.monotonic() < end:
        pass
    return [0.0] * batch.num_rows
"""


class Endless:
    """Pickled, it is an object whose `predict` never returns."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
        return eval, ("type('M', (), {'predict': lambda self, f: any(iter(int, 1))})()",)


def endless_graph() -> bytes:
    """Return an ONNX model that counts for ever."""
    value = helper.make_tensor_value_info
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["again"]), helper.make_node("Add", ["v", "v"], ["w"])],
        "body",
        [value("i", TensorProto.INT64, []), value("go", TensorProto.BOOL, []), value("v", TensorProto.DOUBLE, ["n"])],
        [value("again", TensorProto.BOOL, []), value("w", TensorProto.DOUBLE, ["n"])],
    )
    graph = helper.make_graph(
        [helper.make_node("Loop", ["", "yes", "x"], ["y"], body=body)],
        "g",
        [value("x", TensorProto.DOUBLE, ["n"])],
        [value("y", TensorProto.DOUBLE, ["n"])],
        [helper.make_tensor("yes", TensorProto.BOOL, [], [True])],
    )
    return model_of(graph)


def prediction(format_: ModelFormat, content: bytes, seconds: float, batch_rows: int) -> Prediction:
    told = not isinstance(format_, Onnx)
    given = declare_model(["x:double"] if told else [], ["y:double"] if told else [])
    declared = Declared(given.features, given.outputs, "f" if isinstance(format_, PythonFunction) else "")
    signature = format_.describe(content, declared)
    version = ModelVersion(
        "m", 1, format_.name, "0" * 64, len(content), declared.entry, "m", signature, datetime.now(UTC), "me"
    )
    bound = BoundModel(
        "scored",
        version,
        tuple((feature, feature.name) for feature in signature.features),
        tuple((output, output.type) for output in signature.outputs),
        batch_rows,
    )
    return Prediction(bound, TimedModel(format_.load(content, version, 1), seconds))


@pytest.mark.parametrize(
    ("format_", "content"), [(Onnx(), endless_graph()), (Pickle(), pickle.dumps(Endless()))], ids=["onnx", "pickle"]
)
def test_an_endless_prediction_is_ended(format_: ModelFormat, content: bytes) -> None:
    with pytest.raises(TimeLimitExceeded, match=r"node scored, model m@1, batch 1 .*longer than 0\.2 s") as raised:
        list(prediction(format_, content, 0.2, 3).over(ROWS.to_reader()))
    assert raised.value.fields["setting"] == "models.time_limit_seconds"
    assert raised.value.next_step is not None and "models.time_limit_seconds" in raised.value.next_step


def test_a_function_is_not_asked_again_once_its_time_is_up() -> None:
    with pytest.raises(TimeLimitExceeded, match=r"batch 2 \(rows 2 to 2\): the model computed for longer than 0.2 s"):
        list(prediction(PythonFunction(), SLOW.encode(), 0.2, 1).over(ROWS.to_reader()))
