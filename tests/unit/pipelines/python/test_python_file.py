"""A decorated function is a pipeline like one in YAML: the same spec, the same checks, with file and line."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lakeward.errors import SpecError
from lakeward.pipelines.project import Project

Load = Callable[[dict[str, str]], Project]

SCORES = """\
import lakeward

@lakeward.transform(
    dataset="main.analytics.scores",
    sources={
        "orders": "main.raw.orders",
        "customers": {"source": "main.raw.customers", "window": "full"},
    },
    columns={"score": "double", "id": "long"},
    strategy="append_new",
    primary_key=["id"],
    expectations=("primary_key", {"not_null": ["score"]}),
    arm="iceberg",
    tags=["daily"],
    schedule="0  6 * * mon-fri",
    row_wise=True,
)
def scores(orders, customers):
    yield from ()
"""

YAML = """\
pipeline: scores
nodes:
  orders: {source: main.raw.orders}
  customers: {source: main.raw.customers, window: full}
  scores:
    python:
      call: pipelines/scores.py:scores
      inputs: [orders, customers]
      columns: {score: double, id: long}
      row_wise: true
outputs:
  - dataset: main.analytics.scores
    from: scores
    strategy: append_new
    primary_key: [id]
    expectations: [primary_key, {not_null: [score]}]
    arm: iceberg
tags: [daily]
schedule: "0 6 * * mon-fri"
"""


def test_it_is_what_its_yaml_is(load: Load) -> None:
    [declared] = load({"pipelines/scores.py": SCORES}).pipelines
    [written] = load({"pipelines/scores.py": "def scores(orders, customers): ...", "pipelines/s.yml": YAML}).pipelines
    assert {**declared.to_json(), "code": None} == {**written.to_json(), "code": None}
    assert list(declared.spec.nodes["scores"].python.columns) == ["score", "id"]  # type: ignore[union-attr]
    stored = declared.from_json(declared.to_json(), "stored")
    assert stored.spec == declared.spec
    assert stored.spec.code == {"pipelines/scores.py": SCORES}


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"append_new"', '"apend_new"', r"scores\.py:10: unknown strategy 'apend_new'"),
        ('"score": "double"', '"score": "dubble"', r"scores\.py:9: .*dubble"),
        ('"main.raw.customers", "window"', '"main.raw", "window"', r"scores\.py:7: "),
        ('"main.raw.orders"', '"orders"', r"scores\.py:6: "),
        ('"window"', '"windows"', r"scores\.py:7: unknown key 'windows'"),
        ('{"not_null"', '{"not_nul"', r"scores\.py:12: "),
        ("(orders, customers)", "(orders)", r"scores\.py:7: .*scores \(line 18\) takes no argument 'customers'"),
        ("(orders, customers)", "(orders, customers, more)", r"scores\.py:5: .*needs its argument 'more'"),
        ("(orders, customers)", "(orders, /, customers)", r"takes no argument 'orders'"),
        ("    yield", "    yeld", r"scores\.py:19: not valid Python"),
        ("0  6", "6", r"scores\.py:15: 'schedule' is .*: it has 4 fields"),
        ("import lakeward", "import lakeward, nothing_here", r"scores\.py:1, in <module>: ModuleNotFoundError"),
        ("import lakeward", "import lakeward, sys; sys.exit(3)", r"can't be run: .*scores\.py:1, .*SystemExit: 3"),
        ("    row_wise", "    rowwise", r"scores\.py:3, in <module>: TypeError: .*rowwise"),
        ("def scores(orders, customers):\n    yield from ()", "class scores: ...", r"declares a function"),
        ("    yield from ()", "    yield from ()\n\nscores = None", r"scores\.py:3: the file has another 'scores'"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(load: Load, old: str, new: str, says: str) -> None:
    assert SCORES.count(old) == 1
    with pytest.raises(SpecError, match=says):
        load({"pipelines/scores.py": SCORES.replace(old, new)})


def test_a_file_may_hold_several_and_helpers_may_hold_none(load: Load) -> None:
    two = (
        SCORES.replace("def scores", "def more")
        .replace("analytics.scores", "analytics.more")
        .replace("row_wise=True", 'row_wise=True, pipeline="More of them"')
    )
    files = {"pipelines/scores.py": SCORES + two, "pipelines/shared.py": "from pipelines.scores import scores\n"}
    assert [pipeline.name for pipeline in load(files).pipelines] == ["More of them", "scores"]
    with pytest.raises(SpecError, match=r"scores\.py:3: pipeline 'scores' is also in pipelines/again\.py"):
        load({"pipelines/again.py": SCORES.replace("analytics.scores", "analytics.other")})


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("lib.clean:features", r"s\.yml:7: 'call' is 'lib.clean:features', and names no function"),
        ("../clean.py:features", "names no function"),
        ("lib/gone.py:features", r"s\.yml:7: .*which the project does not have"),
        ("pipelines/scores.py:score", r"s\.yml:7: .*has no function 'score'; it has scores"),
    ],
)
def test_a_call_that_names_nothing_is_told(load: Load, call: str, says: str) -> None:
    yml = YAML.replace("pipelines/scores.py:scores", call)
    with pytest.raises(SpecError, match=says):
        load({"pipelines/scores.py": "def scores(orders, customers): ...", "pipelines/s.yml": yml})
