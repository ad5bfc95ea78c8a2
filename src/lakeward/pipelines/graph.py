"""The order of things: nodes within a pipeline by what their SQL reads, pipelines by the datasets between them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from lakeward.compute.predicate import check_predicate
from lakeward.compute.sql import Query, analyse
from lakeward.errors import SpecError, SqlError
from lakeward.pipelines.chance import changing_splits
from lakeward.pipelines.expectation_spec import quarantine_of, read_expectations
from lakeward.pipelines.latest import fitted_models, latest_models
from lakeward.pipelines.nodes import JoinNode, Node, SplitNode, StageNode, TransformNode, names_of
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.spec import OutputSpec, Pipeline
from lakeward.types.schema import name_key


@dataclass(frozen=True)
class Graph:
    """What reads what in a pipeline, by the names that nodes make: a split makes two, every other one its own.

    Args:
        pipeline: which one.
        order: the names, each after what it reads.
        reads: what each of them reads, directly.
        makers: the node that makes each.
        queries: the queries of transforms.
        unused: what no output needs.
    """

    pipeline: Pipeline
    order: tuple[str, ...]
    reads: Mapping[str, tuple[str, ...]]
    makers: Mapping[str, str]
    queries: Mapping[str, Query]
    unused: tuple[str, ...]

    def needed(self, name: str) -> tuple[str, ...]:
        """Return the names that `name` needs, itself included, in order."""
        return _needed(name, self.order, self.reads)

    def sources(self, output: OutputSpec) -> dict[str, str]:
        """Return the datasets that an output is made from, by the names of their source nodes."""
        sources = self.pipeline.sources
        return {name: sources[name] for name in self.needed(output.from_) if name in sources}

    def node(self, name: str) -> Node:
        """Return the node that makes a name."""
        return self.pipeline.spec.nodes[self.makers[name]]


def read_graph(pipeline: Pipeline) -> Graph:
    """Read the SQL of every node and order them.

    Raises:
        SqlError: queries are wrong, refused, or read a name that is no node; each with file, line and node.
        SpecError: nodes read each other in a circle, which is named.
    """
    nodes = pipeline.spec.nodes
    makers = {made: name for name, node in nodes.items() for made in names_of(name, node)}
    queries: dict[str, Query] = {}
    reads: dict[str, tuple[str, ...]] = {}
    problems = Problems()
    for name, node in nodes.items():
        read: tuple[str, ...] = ()
        if isinstance(node, TransformNode):
            try:
                queries[name] = analyse(node.transform, list(makers))
                read = queries[name].reads
            except SqlError as error:
                problems.add(pipeline.sql_error(name, error))
        elif isinstance(node, JoinNode):
            read = (node.join.left, node.join.right)
        elif isinstance(node, SplitNode):
            try:
                check_predicate(node.split.where)
            except SqlError as error:
                problems.add(pipeline.sql_error(name, error))
            read = (node.split.input,)
        elif isinstance(node, StageNode):
            read = tuple(dict.fromkeys(node.inputs.values()))
        reads |= dict.fromkeys(names_of(name, node), read)
    problems.raise_all()
    order, circle = _sorted(reads)
    if circle:
        raise pipeline.origin.error(
            f"nodes read each other in a circle: {' → '.join(circle)}",
            ("nodes", makers[circle[0]]),
            key=True,
            next_step="let one of them read something else",
        )
    used = {needed for output in pipeline.spec.outputs for needed in _needed(output.from_, order, reads)}
    unused = tuple(name for name in makers if name not in used)
    _check_splits(pipeline, order, makers, queries, used)
    return Graph(pipeline, tuple(order), reads, makers, queries, unused)


def _check_splits(
    pipeline: Pipeline, order: Sequence[str], makers: Mapping[str, str], queries: Mapping[str, Query], used: set[str]
) -> None:
    nodes = pipeline.spec.nodes
    both = [
        name for name, node in nodes.items() if isinstance(node, SplitNode) and used.issuperset(names_of(name, node))
    ]
    if not both:
        return
    texts = {name: query.text for name, query in queries.items()}
    for name in changing_splits(nodes, order, makers, texts):
        if name in both:
            raise pipeline.origin.error(
                f"node {name!r} splits by chance or by the time (as of random() or now()): each side is a query of its "
                "own, so a row could go to both or to neither",
                ("nodes", name, "split", "where"),
                next_step="let another pipeline write that column to a dataset, and split by it here",
            )


def order_pipelines(pipelines: Sequence[Pipeline]) -> list[Pipeline]:
    """Return the pipelines, each after those that write what it reads; by name where the order is free.

    Raises:
        SpecError: two pipelines write one dataset, or they read each other in a circle, which is named.
    """
    by_name = {pipeline.name: pipeline for pipeline in pipelines}
    order, circle = _sorted(pipeline_edges(pipelines))
    if circle:
        raise SpecError(
            f"pipelines read each other in a circle: {' → '.join(circle)}",
            next_step="let one of them read something else",
            file=by_name[circle[0]].origin.file,
            pipelines=circle,
        )
    return [by_name[name] for name in order]


def pipeline_edges(pipelines: Sequence[Pipeline]) -> dict[str, tuple[str, ...]]:
    """Return the names of the pipelines that write what each one reads, its expectations included, by its own name.

    Raises:
        SpecError: two pipelines write one dataset.
    """
    writer: dict[str, tuple[Pipeline, OutputSpec]] = {}
    problems = Problems()
    for pipeline in pipelines:
        for index, output in enumerate(pipeline.spec.outputs):
            other = writer.setdefault(name_key(output.dataset), (pipeline, output))
            if other[0] is not pipeline:
                problems.add(
                    pipeline.origin.error(
                        f"dataset {output.dataset} is also written by pipeline {other[0].name!r} "
                        f"({other[0].origin.file})",
                        ("outputs", index, "dataset"),
                        next_step="keep one of the two outputs: a dataset has one pipeline",
                    )
                )
    for pipeline in pipelines:
        for index, output in enumerate(pipeline.spec.outputs):
            bad = quarantine_of(output.dataset, output.expectations, pipeline.origin)
            if bad is not None and writer.setdefault(name_key(bad), (pipeline, output))[0] is not pipeline:
                problems.add(
                    pipeline.origin.error(
                        f"{bad}, where bad rows of {output.dataset} go, is also written by pipeline "
                        f"{writer[name_key(bad)][0].name!r}",
                        ("outputs", index, "dataset"),
                        next_step="rename one of the two",
                    )
                )
    problems.raise_all()
    fitters = _fitters(pipelines)
    by_name = {pipeline.name: pipeline for pipeline in sorted(pipelines, key=lambda pipeline: pipeline.name)}
    return {
        name: tuple(
            sorted(
                {writer[name_key(source)][0].name for source in pipeline.sources.values() if name_key(source) in writer}
                | {writer[name_key(known)][0].name for known in _known(pipeline) if name_key(known) in writer} - {name}
                | {fitters[model] for model in latest_models(pipeline) if model in fitters}
            )
        )
        for name, pipeline in by_name.items()
    }


def _fitters(pipelines: Sequence[Pipeline]) -> dict[str, str]:
    """Return the name of the pipeline that fits each model.

    Raises:
        SpecError: two nodes fit one model, or a pipeline uses the newest version of one that it fits itself.
    """
    fitters: dict[str, str] = {}
    for pipeline in pipelines:
        for node, model in fitted_models(pipeline).items():
            other = fitters.setdefault(model, pipeline.name)
            twice = list(fitted_models(pipeline).values()).count(model) > 1
            if other != pipeline.name or twice:
                where = "another node" if twice else f"pipeline {other!r}"
                raise pipeline.origin.error(
                    f"model {model!r} is also fitted by {where}",
                    ("nodes", node, "fit", "model"),
                    next_step="give one of the two another name",
                )
            if model in latest_models(pipeline):
                raise pipeline.origin.error(
                    f"model {model!r} is fitted here and used as {model}@latest: a build uses the versions that were "
                    "there before it",
                    ("nodes", node, "fit", "model"),
                    next_step="use it in another pipeline, which is built after this one",
                )
    return fitters


def _known(pipeline: Pipeline) -> set[str]:
    """Return the datasets that a pipeline's expectations read."""
    outputs = [output.expectations for output in pipeline.spec.outputs]
    return {each.reads for data in outputs for each in read_expectations(data, (), pipeline.origin) if each.reads}


def _needed(name: str, order: Sequence[str], reads: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    wanted = {name}
    for each in reversed(order):
        if each in wanted:
            wanted.update(reads[each])
    return tuple(each for each in order if each in wanted)


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
