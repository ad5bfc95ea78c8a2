"""The order of nodes and of pipelines."""

from __future__ import annotations

import pytest

from lakeward.errors import SpecError, SqlError
from lakeward.pipelines.document import read_document
from lakeward.pipelines.graph import Graph, order_pipelines, read_graph
from lakeward.pipelines.spec import Pipeline, read_spec


def pipeline(name: str, nodes: dict[str, str], *outputs: tuple[str, str]) -> Pipeline:
    """A node's text is a dataset's name or SQL."""
    lines = [f"pipeline: {name}", "nodes:"]
    lines += [f"  {node}: {{{'transform' if ' ' in text else 'source'}: '{text}'}}" for node, text in nodes.items()]
    lines += ["outputs:"]
    lines += [f"  - {{dataset: {dataset}, from: {node}, strategy: replace}}" for dataset, node in outputs]
    return read_spec(*read_document("\n".join(lines), f"pipelines/{name}.yml"))


def graph(nodes: dict[str, str], *outputs: tuple[str, str]) -> Graph:
    return read_graph(pipeline("p", nodes, *outputs))


def test_nodes_come_after_what_they_read_whatever_the_order_in_the_file() -> None:
    found = graph(
        {"last": "from mid select id", "mid": "from a join b using (id)", "b": "main.r.b", "a": "main.r.a"},
        ("main.x.y", "last"),
    )
    assert found.order == ("a", "b", "mid", "last")
    assert found.queries["mid"].reads == ("a", "b")
    assert found.needed("mid") == ("a", "b", "mid")
    assert found.needed("a") == ("a",)


def test_nodes_that_no_output_needs_are_named() -> None:
    nodes = {"a": "main.r.a", "b": "main.r.b", "used": "from a select id", "idle": "from b", "more": "from idle, used"}
    assert graph(nodes, ("main.x.y", "used")).unused == ("b", "idle", "more")


@pytest.mark.parametrize(
    ("nodes", "circle"),
    [
        ({"a": "from a select id"}, "a → a"),
        ({"a": "from b select id", "b": "from c", "c": "from a"}, "a → b → c → a"),
        ({"s": "main.r.s", "x": "from s, y", "y": "from z", "z": "from y"}, "y → z → y"),
    ],
)
def test_circles_are_named(nodes: dict[str, str], circle: str) -> None:
    with pytest.raises(SpecError) as raised:
        graph({**nodes, "src": "main.r.x"}, ("main.x.y", "src"))
    assert f"in a circle: {circle}" in raised.value.message
    assert raised.value.fields["line"] is not None


def test_a_long_chain_is_no_reason_to_fail() -> None:
    nodes = {f"n{number}": f"from n{number + 1} select id" for number in range(2_000)} | {"n2000": "main.r.a"}
    assert graph(nodes, ("main.x.y", "n0")).order[0] == "n2000"


def test_errors_in_sql_have_file_line_and_node() -> None:
    with pytest.raises(SqlError) as raised:
        graph({"orders": "main.r.o", "bad": "select * from ordres"}, ("main.x.y", "bad"))
    assert raised.value.message.startswith("pipelines/p.yml:4: node bad: unknown name 'ordres'")
    assert raised.value.next_step == "did you mean orders?"
    assert {"file", "line", "node", "pipeline", "column"} <= raised.value.fields.keys()


def test_pipelines_come_after_those_that_write_what_they_read() -> None:
    found = order_pipelines(
        [
            pipeline("a", {"x": "main.m.B"}, ("main.m.a", "x")),
            pipeline("b", {"x": "main.m.c"}, ("main.m.b", "x")),
            pipeline("c", {"x": "main.raw.x"}, ("main.m.c", "x")),
            pipeline("d", {"x": "main.raw.x"}, ("main.m.d", "x")),
        ]
    )
    assert [each.name for each in found] == ["c", "b", "a", "d"]


def test_pipelines_in_a_circle_are_named() -> None:
    with pytest.raises(SpecError, match="in a circle: a → b → a"):
        order_pipelines(
            [
                pipeline("a", {"x": "main.m.b"}, ("main.m.a", "x")),
                pipeline("b", {"x": "main.m.a"}, ("main.m.b", "x")),
            ]
        )


def test_two_pipelines_that_write_one_dataset_are_refused_with_both_files() -> None:
    with pytest.raises(
        SpecError, match=r"b\.yml:5: dataset main\.m\.A is also written by pipeline 'a' \(pipelines/a\.yml\)"
    ):
        order_pipelines(
            [
                pipeline("a", {"x": "main.raw.x"}, ("main.m.a", "x")),
                pipeline("b", {"x": "main.raw.x"}, ("main.m.A", "x")),
            ]
        )
