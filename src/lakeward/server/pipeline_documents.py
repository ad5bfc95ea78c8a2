"""The documents of pipelines, made from what is applied."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from lakeward.pipelines.graph import read_graph
from lakeward.pipelines.nodes import Node, SourceNode, SplitNode, TransformNode
from lakeward.pipelines.plan import UNCHANGED, Plan
from lakeward.pipelines.project import Project
from lakeward.pipelines.registry import Applied
from lakeward.pipelines.spec import Pipeline
from lakeward.pipelines.text import written
from lakeward.server.documents.pipelines import (
    GraphEdge,
    GraphNode,
    PipelineGraph,
    PipelineShown,
    PipelineSummary,
)


def summary(applied: Applied) -> PipelineSummary:
    """Return a pipeline in a few words."""
    return PipelineSummary.plain(**_facts(applied))


def shown(applied: Applied) -> PipelineShown:
    """Return a pipeline with all that it is made of."""
    if applied.pipeline is None:
        return PipelineShown.plain(**_facts(applied), spec=None, text=None, graph=None)
    spec = applied.pipeline.to_json()
    if "code" in spec:
        spec["code"] = sorted(spec["code"])
    text, graph = written(applied.pipeline), _graph(applied.pipeline).model_dump(by_alias=True)
    return PipelineShown.plain(**_facts(applied), spec=spec, text=text, graph=graph)


def plan_print(project: Project, plan: Plan) -> str:
    """Return what stands for the changes of a plan: equal ones change the same pipelines in the same way.

    What builds would do then does not count, since it changes with every write to a source.
    """
    specs = {pipeline.name: pipeline.to_json() for pipeline in project.pipelines}
    changes = [
        [each.name, each.change, specs.get(each.name), [output.destructive for output in each.outputs]]
        for each in plan.pipelines
        if each.change != UNCHANGED
    ]
    return sha256(json.dumps(sorted(changes, key=lambda each: str(each[0])), sort_keys=True).encode()).hexdigest()


def _facts(applied: Applied) -> dict[str, Any]:
    pipeline = applied.pipeline
    return {
        "name": applied.name,
        "fingerprint": applied.fingerprint,
        "applied_at": applied.applied_at,
        "applied_by": applied.applied_by,
        "readable": pipeline is not None,
        "sources": list(dict.fromkeys(pipeline.sources.values())) if pipeline is not None else [],
        "outputs": [output.dataset for output in pipeline.spec.outputs] if pipeline is not None else [],
        "tags": list(pipeline.spec.tags) if pipeline is not None else [],
        "schedule": pipeline.spec.schedule if pipeline is not None else None,
    }


def _graph(pipeline: Pipeline) -> PipelineGraph:
    graph, nodes = read_graph(pipeline), {}
    edges: dict[tuple[str, str], None] = {}
    for made in graph.order:
        name, node = graph.makers[made], graph.node(made)
        nodes[name] = GraphNode(
            name=name,
            kind=node.kind,
            dataset=node.source if isinstance(node, SourceNode) else None,
            sql=_sql(node),
        )
        edges |= dict.fromkeys((graph.makers[read], name) for read in graph.reads[made])
    outputs = [
        GraphNode(name=each.dataset, kind="output", dataset=each.dataset, sql=None) for each in pipeline.spec.outputs
    ]
    edges |= {(graph.makers[each.from_], each.dataset): None for each in pipeline.spec.outputs}
    return PipelineGraph(
        nodes=[*nodes.values(), *outputs], edges=[GraphEdge.plain(**{"from": one, "to": to}) for one, to in edges]
    )


def _sql(node: Node) -> str | None:
    if isinstance(node, TransformNode):
        return node.transform
    return node.split.where if isinstance(node, SplitNode) else None
