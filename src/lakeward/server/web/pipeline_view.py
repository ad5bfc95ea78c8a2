"""What the page of a pipeline shows of its nodes: what each is, what it reads, and the text that it was written as."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from lakeward.jobs.job import Job
from lakeward.pipelines.graph import read_graph
from lakeward.pipelines.nodes import Node, SourceNode, SplitNode, TransformNode
from lakeward.pipelines.spec import Pipeline
from lakeward.server.web.words import in_path


@dataclass(frozen=True)
class NodeView:
    """One node.

    Args:
        name, kind: of the node.
        reads: the nodes that it reads.
        dataset: what a source reads.
        text: its SQL, or how it was written.
        language: of the text.
    """

    name: str
    kind: str
    reads: tuple[str, ...]
    dataset: str | None
    text: str
    language: str


def nodes_of(pipeline: Pipeline) -> list[NodeView]:
    """Return a pipeline's nodes, each after what it reads."""
    graph = read_graph(pipeline)
    found: dict[str, NodeView] = {}
    for made in graph.order:
        name = graph.makers[made]
        if name not in found:
            node = pipeline.spec.nodes[name]
            reads = tuple(dict.fromkeys(graph.makers[each] for each in graph.reads[made]))
            text, language = _text(node)
            dataset = node.source if isinstance(node, SourceNode) else None
            found[name] = NodeView(name, node.kind, reads, dataset, text, language)
    return list(found.values())


def drawn(pipeline: Pipeline) -> dict[str, Any]:
    """Return a pipeline's graph as `graph.js` takes it: its nodes, and the datasets that they become."""
    graph = read_graph(pipeline)
    nodes, edges = [], []
    for each in nodes_of(pipeline):
        label = f"{each.name}\n{each.dataset}" if each.dataset else each.name
        href = f"/datasets/{in_path(each.dataset)}" if each.dataset else f"#node-{each.name}"
        nodes.append({"id": f"node {each.name}", "label": label, "kind": each.kind, "href": href})
        edges += [{"from": f"node {read}", "to": f"node {each.name}"} for read in each.reads]
    for output in pipeline.spec.outputs:
        made = graph.makers[output.from_]
        branch = output.from_ if isinstance(pipeline.spec.nodes[made], SplitNode) else ""
        nodes.append(
            {
                "id": f"dataset {output.dataset}",
                "label": f"{output.dataset}\n{output.strategy}",
                "kind": "output",
                "href": f"/datasets/{in_path(output.dataset)}",
            }
        )
        edges.append({"from": f"node {made}", "to": f"dataset {output.dataset}", "label": branch})
    return {"nodes": nodes, "edges": edges}


def progress_of(job: Job | None, pipeline: str) -> Mapping[str, int]:
    """Return how many rows of each output a running build has computed so far."""
    if job is None:
        return {}
    begin = f"{pipeline}: "
    return {what.removeprefix(begin): each["done"] for what, each in job.progress.items() if what.startswith(begin)}


def _text(node: Node) -> tuple[str, str]:
    if isinstance(node, TransformNode):
        return node.transform, "sql"
    return str(yaml.safe_dump(node.model_dump(mode="json", by_alias=True), sort_keys=False, allow_unicode=True)), "yaml"
