"""A Python function that computes for too long: its time is looked at between batches, and waits do not count."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyarrow as pa
import pytest

from lakeward.control.models import ModelTables
from lakeward.errors import ComputeError, TimeLimitExceeded
from lakeward.pipelines.models.registry import Models
from lakeward.pipelines.python.code import parse_call
from lakeward.pipelines.stage import Building, Tools
from lakeward.pipelines.stages.python import PythonStage
from lakeward.types.logical import parse_type

BUSY = """\
import time

def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass

"""
ROWS = pa.record_batch({"x": [1, 2]})


def run(body: str, rows: Iterator[pa.RecordBatch], seconds: float | None) -> pa.Table:
    call, long = parse_call("f.py:f"), parse_type("long")
    assert call is not None
    stage = PythonStage(node="n", columns={"x": long}, call=call, inputs={"rows": {"x": long}}, code={"f.py": body})
    tools = Tools(Models(tables(), seconds), 1, building)
    given = pa.RecordBatchReader.from_batches(ROWS.schema, rows)
    return stage.load(tools).run({"rows": given}, ["x"], []).read_all()


def tables() -> ModelTables:
    return ModelTables.__new__(ModelTables)


def building() -> Building:
    raise AssertionError("a function does not ask for it")


@pytest.mark.parametrize(
    "body",
    [
        "def f(rows):\n    for batch in rows:\n        busy(0.1)\n        yield batch\n",
        "def f(rows):\n    seen = [busy(0.1) for batch in rows]\n    return []\n",
        "def f(rows):\n    busy(0.5)\n    return rows\n",
    ],
)
def test_a_function_is_ended_at_its_next_batch(body: str) -> None:
    endless = iter(lambda: ROWS, None)
    with pytest.raises(TimeLimitExceeded, match=r"node n: f\.py:f computed for longer than 0\.2 s") as raised:
        run(BUSY + body, endless, 0.2)
    assert raised.value.fields["setting"] == "models.time_limit_seconds"


def test_waiting_for_rows_is_not_counted() -> None:
    def slow() -> Iterator[pa.RecordBatch]:
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            pass
        yield ROWS

    assert run("def f(rows):\n    yield from rows\n", slow(), 0.2)["x"].to_pylist() == [1, 2]


def test_what_a_function_raises_is_no_limit() -> None:
    with pytest.raises(ComputeError, match="ZeroDivisionError") as raised:
        run("def f(rows):\n    return 1 / 0\n", iter([ROWS]), 60)
    assert not isinstance(raised.value, TimeLimitExceeded)
