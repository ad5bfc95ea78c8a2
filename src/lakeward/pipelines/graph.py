"""The order of things: nodes within a pipeline by what their SQL reads, pipelines by the datasets between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakeward.compute.sql import Query, analyse
from lakeward.errors import SpecError, SqlError
from lakeward.pipelines.nodes import TransformNode
from lakeward.pipelines.spec import OutputSpec, Pipeline
from lakeward.types.schema import name_key


@dataclass(frozen=True)
class Graph:
    """Its nodes: `order` has each after what it reads, `queries` the transforms, `unused` what no output needs."""

    pipeline: Pipeline
    order: tuple[str, ...]
    queries: Mapping[str, Query]
    unused: tuple[str, ...]

    def needed(self, node: str) -> tuple[str, ...]:
        """Return the nodes that `node` needs, itself included, in order."""
        return _needed(node, self.order, self.queries)


def read_graph(pipeline: Pipeline) -> Graph:
    """Read the SQL of every transform and order the nodes.

    Raises:
        SqlError: a query is wrong, refused, or reads a name that is no node; with file, line and node.
        SpecError: nodes read each other in a circle, which is named.
    """
    names = list(pipeline.spec.nodes)
    queries: dict[str, Query] = {}
    for name, node in pipeline.spec.nodes.items():
        if isinstance(node, TransformNode):
            try:
                queries[name] = analyse(node.transform, names)
            except SqlError as error:
                raise pipeline.sql_error(name, error) from None
    edges = {name: queries[name].reads if name in queries else () for name in names}
    order, circle = _sorted(edges)
    if circle:
        raise pipeline.origin.error(
            f"nodes read each other in a circle: {' → '.join(circle)}",
            ("nodes", circle[0]),
            key=True,
            next_step="let one of them read something else",
        )
    used = {needed for output in pipeline.spec.outputs for needed in _needed(output.from_, order, queries)}
    return Graph(pipeline, tuple(order), queries, tuple(name for name in names if name not in used))


def order_pipelines(pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """Return the pipelines, each after those that write what it reads; by name where the order is free.

    Raises:
        SpecError: two pipelines write one dataset, or they read each other in a circle, which is named.
    """
    writer: dict[str, tuple[Pipeline, OutputSpec]] = {}
    for pipeline in pipelines:
        for index, output in enumerate(pipeline.spec.outputs):
            other = writer.setdefault(name_key(output.dataset), (pipeline, output))
            if other[0] is not pipeline:
                raise pipeline.origin.error(
                    f"dataset {output.dataset} is also written by pipeline {other[0].name!r} ({other[0].origin.file})",
                    ("outputs", index, "dataset"),
                    next_step="keep one of the two outputs: a dataset has one pipeline",
                )
    by_name = {pipeline.name: pipeline for pipeline in sorted(pipelines, key=lambda pipeline: pipeline.name)}
    edges = {
        name: tuple(
            sorted(
                {writer[name_key(source)][0].name for source in pipeline.sources.values() if name_key(source) in writer}
            )
        )
        for name, pipeline in by_name.items()
    }
    order, circle = _sorted(edges)
    if circle:
        raise SpecError(
            f"pipelines read each other in a circle: {' → '.join(circle)}",
            next_step="let one of them read something else",
            file=by_name[circle[0]].origin.file,
            pipelines=circle,
        )
    return [by_name[name] for name in order]


def _needed(node: str, order: Sequence[str], queries: Mapping[str, Query]) -> tuple[str, ...]:
    wanted = {node}
    for name in reversed(order):
        if name in wanted and name in queries:
            wanted.update(queries[name].reads)
    return tuple(name for name in order if name in wanted)


def _sorted(edges: Mapping[str, Collection[str]]) -> tuple[list[str], list[str]]:
    """Return the keys, each after what it points to; or a circle, as a path that ends where it begins.

    Without recursion, so that a chain of any length is no reason to fail.
    """
    order: list[str] = []
    done: set[str] = set()
    for start in edges:
        path: list[str] = []
        stack = [(start, iter(edges[start]))] if start not in done else []
        if stack:
            path.append(start)
        while stack:
            name, rest = stack[-1]
            below = next((each for each in rest if each not in done), None)
            if below is None:
                stack.pop()
                path.pop()
                done.add(name)
                order.append(name)
            elif below in path:
                return [], [*path[path.index(below) :], below]
            else:
                stack.append((below, iter(edges[below])))
                path.append(below)
    return order, []
