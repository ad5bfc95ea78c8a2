"""A model that gives anything but one value for each row fails its node; nulls and NaN stay what they are (M03)."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime

import pyarrow as pa
import pytest

import lakeward
from lakeward.errors import ComputeError
from lakeward.pipelines.models.binding import BoundModel
from lakeward.pipelines.models.declaring import declare_model
from lakeward.pipelines.models.formats.python_function import PythonFunction
from lakeward.pipelines.models.model_format import Declared
from lakeward.pipelines.models.predict import Prediction
from lakeward.pipelines.models.registered import ModelVersion

HEAD = "import numpy\nimport pyarrow\n\ndef f(batch):\n    n = batch.num_rows\n    return "


def predicted(
    value: str, type_: str = "double", rows: int = 5, batch_rows: int = 3, outputs: tuple[str, ...] = ("y",)
) -> list[object]:
    """Return what `f` gives for so many rows with ids from 1; `value` is the expression that it returns."""
    body = (HEAD + value).encode()
    given = declare_model(["id:long"], [f"{output}:{type_}" for output in outputs])
    format_ = PythonFunction()
    signature = format_.describe(body, Declared(given.features, given.outputs, "f"))
    version = ModelVersion(
        "m", 1, "python_function", "0" * 64, len(body), "f", "m.py", signature, datetime.now(UTC), "me"
    )
    bound = BoundModel(
        "scored",
        version,
        tuple((feature, feature.name) for feature in signature.features),
        tuple((output, output.type) for output in signature.outputs),
        batch_rows,
    )
    table = pa.table({"id": pa.array(range(1, rows + 1), pa.int64())})
    model = format_.load(body, version, 1)
    batches = list(Prediction(bound, model, ["id"]).over(table.to_reader()))
    return [value for batch in batches for value in batch.column("y").to_pylist()]


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("[0.0] * (n - 1)", "gave 2 values for output 'y', and 3 rows were given"),
        ("[0.0] * (n + 1)", "gave 4 values for output 'y', and 3 rows were given"),
        ("numpy.zeros(n - 1)", "gave 2 values"),
        ("numpy.zeros(n + 1)", "gave 4 values"),
        ("numpy.zeros((n, 2))", "an array of the shape (3, 2)"),
        ("numpy.zeros((1, n))", "an array of the shape (1, 3)"),
        ("numpy.float64(1)", "gave one value for output 'y'"),
        ("1.0", "gave a float for output 'y', and a column of 3 values is needed"),
        ("'abc'", "gave a str for output 'y'"),
        ("None", "gave nothing (None) for output 'y'"),
        ("(each for each in [1.0] * n)", "gave a generator for output 'y'"),
        ("{1.0, 2.0, 3.0}", "gave a set for output 'y'"),
        ("['a', 'b', 'c']", "in row 1 of the batch, the value 'a'"),
        ("numpy.array(['a'] * n)", "in row 1 of the batch, the value 'a'"),
        ("[0.0, 0.0, True]", "in row 3 of the batch, the value True"),
        ("{'z': [0.0] * n}", "gave the columns z, and y are needed"),
        ("{'y': [0.0] * n, 'z': [0.0] * n}", "gave the columns y, z, and y are needed"),
        ("{}", "gave the columns (none), and y are needed"),
        ("{'y': [0.0] * n, '__source_row_index__': [0, 1, 1]}", "other rows than it got, or one of them twice"),
        ("{'y': [0.0] * n, '__source_row_index__': [1, 2, 3]}", "other rows than it got, or one of them twice"),
        ("pyarrow.table({'y': pyarrow.nulls(n - 1, pyarrow.float64())})", "gave 2 values"),
    ],
)
def test_m03_anything_but_one_value_for_each_row_is_refused(value: str, says: str) -> None:
    with pytest.raises(ComputeError) as raised:
        predicted(value)
    error = raised.value
    assert says in error.message
    assert error.message.startswith("node scored, model m@1, batch 1 (rows 1 to 3): the model gave ")
    assert (error.fields["node"], error.fields["model"], error.fields["batch"]) == ("scored", "m@1", 1)


@pytest.mark.parametrize(
    ("value", "type_", "says"),
    [
        (
            "numpy.array([1, 2**31, 3])[:n]",
            "int",
            "in row 2 of the batch, the value 2147483648, which does not fit int",
        ),
        ("[1, 2**31, 3][:n]", "int", "in row 2 of the batch, the value 2147483648"),
        ("[1, 2**63, 3][:n]", "long", "in row 2 of the batch, the value 9223372036854775808"),
        ("[1.0, 2.0, float('nan')][:n]", "long", "in row 1 of the batch, the value 1.0"),
        ("numpy.array([1.0, 2.0, numpy.nan])[:n]", "long", "gave double for output 'y', which is long"),
        ("numpy.array([1.5, 2.1, 3.0])[:n]", "float", "in row 2 of the batch, the value 2.1, which is not exact as"),
        ("numpy.array([1, 2**53 + 1, 3])[:n]", "double", "in row 2 of the batch, the value 9007199254740993"),
        ("numpy.zeros(n, bool)", "int", "gave bool for output 'y', which is int"),
    ],
)
def test_m03_no_value_becomes_another_one(value: str, type_: str, says: str) -> None:
    with pytest.raises(ComputeError) as raised:
        predicted(value, type_)
    assert says in raised.value.message


@pytest.mark.parametrize(
    ("value", "type_", "gives"),
    [
        ("[1.0, None, 3.0][:n]", "double", [1.0, None, 3.0, 1.0, None]),
        ("numpy.array([1, None, 3], dtype=object)[:n]", "long", [1, None, 3, 1, None]),
        ("numpy.ma.array([1, 2, 3], mask=[0, 1, 0])[:n]", "long", [1, None, 3, 1, None]),
        ("numpy.arange(n).reshape(-1, 1)", "int", [0, 1, 2, 0, 1]),
        ("numpy.arange(n, dtype='>i4')", "int", [0, 1, 2, 0, 1]),
        ("numpy.array(['a', 'b', 'c'])[:n]", "string", ["a", "b", "c", "a", "b"]),
        ("batch['id']", "long", [1, 2, 3, 4, 5]),
        ("{'y': batch['id']}", "long", [1, 2, 3, 4, 5]),
        ("pyarrow.chunked_array([batch['id'][:1], batch['id'][1:]])", "long", [1, 2, 3, 4, 5]),
        ("tuple(range(n))", "long", [0, 1, 2, 0, 1]),
        ("numpy.zeros(n, bool)", "boolean", [False] * 5),
        ("numpy.zeros(n, 'M8[us]')", "timestamp", [datetime(1970, 1, 1)] * 5),
    ],
)
def test_m03_one_value_for_each_row_is_taken_in_any_form(value: str, type_: str, gives: list[object]) -> None:
    assert predicted(value, type_) == gives


def test_m03_nan_and_infinity_stay_what_they_are() -> None:
    for value in ("numpy.array([1, numpy.nan, numpy.inf])[:n]", "[1.0, float('nan'), float('inf')][:n]"):
        found = predicted(value, rows=3)
        assert isinstance(found[1], float) and math.isnan(found[1])
        assert (found[0], found[2]) == (1.0, math.inf)


def test_m03_a_row_that_raises_is_named_with_its_key() -> None:
    with pytest.raises(ComputeError) as raised:
        predicted("[1 / (each - 5) for each in batch['id'].to_pylist()]", rows=7, batch_rows=7)
    assert raised.value.message == (
        "node scored, model m@1, batch 1 (rows 1 to 7), row 5 (id=5): the model raised ZeroDivisionError: "
        "division by zero"
    )
    assert (raised.value.fields["row"], raised.value.fields["key"]) == (5, {"id": "5"})


def test_m03_what_raises_only_for_several_rows_together_names_the_batch() -> None:
    with pytest.raises(ComputeError) as raised:
        predicted("[1.0] if n == 1 else 1 / 0", rows=3)
    assert "batch 1 (rows 1 to 3): the model raised ZeroDivisionError" in raised.value.message


def test_several_outputs_need_a_mapping() -> None:
    with pytest.raises(ComputeError, match="gave a list, and a mapping of y, z is needed"):
        predicted("[0.0] * n", outputs=("y", "z"))
    assert predicted("{'z': [0.0] * n, 'y': [1.0] * n}", outputs=("y", "z")) == [1.0] * 5


def test_m03_a_build_that_fails_writes_nothing(
    workspace: lakeward.Workspace,
    rows: lakeward.Dataset,
    add: Callable[..., ModelVersion],
    build: Callable[..., lakeward.Dataset],
) -> None:
    rows.write([{"id": each, "v": None, "t": ""} for each in range(1, 200)])
    add("def f(batch):\n    return [1.0 / (each - 150) for each in batch['id'].to_pylist()]\n")
    with pytest.raises(ComputeError) as raised:
        build()
    message = raised.value.message
    assert message.startswith("pipeline 'p', output main.m.out: node scored, model m@1, batch 3 (rows 129 to 192)")
    assert "row 150 (id=150)" in message
    out = workspace.dataset("main.m.out")
    assert (out.version, out.row_count, out.to_arrow().num_rows) == (0, 0, 0)
    add("def f(batch):\n    return batch['v']\n")
    assert build(model="m@2").to_arrow().column("y").null_count == 199
