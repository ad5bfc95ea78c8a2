"""A dataset's lineage as a graph to be drawn, and as a list to be read: the same links."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import quote

from lakeward.control.names import full_name, parse_levels
from lakeward.pipelines.lineage import UNSEEN, ColumnLineage, Lineage


@dataclass(frozen=True)
class Link:
    """One column that is made from another.

    Args:
        source, target: dataset and column.
        pipeline: what makes it.
    """

    source: tuple[str, str]
    target: tuple[str, str]
    pipeline: str | None


@dataclass
class LineageGraph:
    """What a dataset, or one of its columns, is made from, and what is made from it.

    Args:
        nodes, edges: as `graph.js` draws them.
        links: the same by columns, for those who read it.
        notes: what can't be told.
    """

    nodes: list[dict[str, object]] = field(default_factory=list)
    edges: list[dict[str, str]] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def lineage_graph(lineage: Lineage, dataset: str, column: str | None) -> LineageGraph:
    """Follow columns both ways.

    Args:
        lineage: of the applied pipelines.
        dataset: which one.
        column: one of its columns; None: all of them, and the graph is one of datasets.
    """
    wanted = [column] if column is not None else lineage.columns(dataset)
    links: dict[Link, None] = {}
    notes: dict[str, None] = {}
    for each in wanted:
        for link, note in (*_up(lineage.up(dataset, each)), *_down(lineage.down(dataset, each))):
            if link is not None:
                links[link] = None
            if note is not None:
                notes[note] = None

    graph = LineageGraph(links=list(links), notes=list(notes))
    ends = dict.fromkeys([(dataset, column or ""), *(end for each in links for end in (each.source, each.target))])
    by_column = column is not None
    for name, of in dict.fromkeys((name, of if by_column else "") for name, of in ends):
        graph.nodes.append(_node(name, of, here=name == dataset and of == (column or "")))
    pairs = {(_id(each.source, by_column), _id(each.target, by_column)): each.pipeline or "" for each in links}
    graph.edges = [{"from": source, "to": target, "label": by} for (source, target), by in pairs.items()]
    return graph


Found = tuple[Link | None, str | None]


def _up(node: ColumnLineage) -> Iterator[Found]:
    if node.note:
        yield None, f"{node.dataset}.{node.column}: {node.note}"
    for each in node.links:
        yield Link((each.dataset, each.column), (node.dataset, node.column), node.pipeline), None
        yield from _up(each)


def _down(node: ColumnLineage) -> Iterator[Found]:
    if node.note:
        yield None, f"{node.dataset}.{node.column}: {node.note}"
    for each in node.links:
        yield Link((node.dataset, node.column), (each.dataset, each.column), each.pipeline), None
        yield from _down(each)


def _id(end: tuple[str, str], by_column: bool) -> str:
    return f"{end[0]}\n{end[1] if by_column else ''}"


def _node(name: str, column: str, here: bool) -> dict[str, object]:
    href = "" if name == UNSEEN else f"/datasets/{quote(name, safe='')}?tab=lineage"
    levels = parse_levels(name, 3)
    short = f"{full_name(levels[-1:])}\n{full_name(levels[:-1])}" if levels else name
    if column:
        href += f"&column={quote(column, safe='')}"
        short = f"{column}\n{name}"
    return {"id": f"{name}\n{column}", "label": short, "href": href, "kind": "dataset", "here": here}
