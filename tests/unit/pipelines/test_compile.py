"""One query of a pipeline output, and its columns."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest

from lakeward.compute.engine import Engine, Input
from lakeward.errors import SchemaError, SqlError
from lakeward.pipelines.compile import Compiler
from lakeward.pipelines.graph import Graph, read_graph
from lakeward.pipelines.project import Project
from lakeward.types.schema import Schema

SCHEMA = Schema.declare({"id": "long", "kind": "string"})
YAML = """
pipeline: p
nodes:
  raw: {{source: main.raw.x}}
  'odd "name"; --': {{transform: 'select id, kind from raw where id > 0 -- positive'}}
  idle: {{transform: "select * from raw"}}
  last:
    transform: |
      {last}
outputs:
  - {{dataset: main.m.y, from: last, strategy: replace}}
"""
LAST = 'with raw as (from "odd ""name""; --") select id, upper(kind) as kind from raw order by id desc; -- done'


@pytest.fixture
def graph(project: Callable[..., Project]) -> Callable[[str], Graph]:
    return lambda last=LAST: read_graph(project(a_yml=YAML.format(last=last)).pipelines[0])


def run(graph: Graph, engine: Engine) -> list[dict[str, object]]:
    table = pa.table({"id": [0, 1, 2], "kind": ["a", "b", "c"]})
    compiled = Compiler(graph, engine, {"main.raw.x": SCHEMA}).compile(graph.pipeline.spec.outputs[0])
    source = Input(SCHEMA, lambda columns: table.select(list(columns)).to_reader())
    return engine.run(compiled.sql, dict.fromkeys(compiled.sources, source)).read_all().to_pylist()


def test_every_needed_node_is_a_common_table_expression_of_the_users_text(
    graph: Callable[..., Graph], engine: Engine
) -> None:
    compiled = Compiler(graph(), engine, {"main.raw.x": SCHEMA}).compile(graph().pipeline.spec.outputs[0])
    assert compiled.sources == {"raw": "main.raw.x"}
    assert '"odd ""name""; --" AS (\nselect id, kind from raw where id > 0 -- positive\n)' in compiled.sql
    assert "idle" not in compiled.sql
    assert run(graph(), engine) == [{"id": 2, "kind": "C"}, {"id": 1, "kind": "B"}]


def test_an_output_may_be_a_source(project: Callable[..., Project], engine: Engine) -> None:
    text = (
        "pipeline: p\nnodes: {raw: {source: main.raw.x}}\noutputs: [{dataset: a.b.c, from: raw, strategy: replace}]\n"
    )
    assert len(run(read_graph(project(a_yml=text).pipelines[0]), engine)) == 3


def test_described_columns(graph: Callable[..., Graph], engine: Engine) -> None:
    columns = Compiler(graph(), engine, {"main.raw.x": SCHEMA}).describe(graph().pipeline.spec.outputs[0])
    assert {name: str(type_) for name, type_ in columns.items()} == {"id": "long", "kind": "string"}


@pytest.mark.parametrize(
    ("last", "error", "says"),
    [
        ("select idd from raw", SqlError, 'pipelines/a.yml:9: node last: Referenced column "idd" not found'),
        ("select id, id from raw", SchemaError, "pipelines/a.yml:7: node last: the result has two columns named 'id'"),
        (
            "select interval 1 day as day from raw",
            SchemaError,
            "pipelines/a.yml:7: node last: result column 'day' is of type",
        ),
        ("select fooo(id) as x from raw", SqlError, "Scalar Function with name fooo does not exist"),
    ],
)
def test_errors_name_file_line_and_node(
    graph: Callable[..., Graph], engine: Engine, last: str, error: type[SqlError | SchemaError], says: str
) -> None:
    with pytest.raises(error) as raised:
        Compiler(graph(last), engine, {"main.raw.x": SCHEMA}).describe(graph(last).pipeline.spec.outputs[0])
    assert says in raised.value.message
    assert raised.value.fields["node"] == "last"


def test_an_error_in_an_earlier_node_names_that_node(project: Callable[..., Project], engine: Engine) -> None:
    text = YAML.format(last='select id from "odd ""name""; --"').replace(
        "select id, kind from raw", "select id, kid from raw"
    )
    graph = read_graph(project(a_yml=text).pipelines[0])
    with pytest.raises(SqlError, match=r'pipelines/a\.yml:5: node odd "name"; --: Referenced column "kid"') as raised:
        Compiler(graph, engine, {"main.raw.x": SCHEMA}).describe(graph.pipeline.spec.outputs[0])
    assert raised.value.next_step == 'did you mean "kind"?'
