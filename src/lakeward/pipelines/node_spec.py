"""Reads the nodes of a spec: known kinds, known keys, names that can be told apart. Nothing is looked up here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from lakeward.discovery import discover
from lakeward.pipelines import stages
from lakeward.pipelines.nodes import (
    NODES,
    JoinNode,
    Node,
    SourceNode,
    SplitNode,
    StageNode,
    TransformNode,
    names_of,
)
from lakeward.pipelines.origin import Origin, Path
from lakeward.pipelines.problems import Problems
from lakeward.pipelines.spec_checks import (
    check_name,
    checked_model,
    dataset_name,
    keys_of,
    known_keys,
    listed,
    mapping,
    nearest,
    one_of,
    shown,
)
from lakeward.pipelines.stage import Stage
from lakeward.types.schema import name_key


@cache
def stage_classes() -> dict[str, type[Stage]]:
    """Return the kinds of nodes that are no SQL, by name."""
    return discover(stages, Stage)


def read_nodes(data: Any, origin: Origin, problems: Problems) -> tuple[dict[str, Node], list[str] | None]:
    """Check the nodes of a spec.

    Args:
        data: as they are written.
        origin: where.
        problems: where what is wrong is noted.

    Returns:
        The nodes that are right, and the names that all of them make; None: these can't be told.
    """
    if not isinstance(data, dict) or not data:
        problems.add(
            origin.error(
                "'nodes' is empty" if not data else f"'nodes' is {shown(data)}, and should be a mapping: nodes by name",
                ("nodes",),
                next_step="a pipeline needs at least one source, as in `orders: {source: main.raw.orders}`",
            )
        )
        return {}, None
    twins: dict[str, str] = {}
    nodes: dict[str, Node] = {}
    readable: list[str] = []
    what = "source" if origin.header_lines else "node"
    for name, body in data.items():
        path: Path = ("nodes", name)
        readable += _names_meant(name, body)
        with problems.collect():
            check_name(name, what, path, origin, key=True)
            twin = twins.setdefault(name_key(name), name)
            if twin != name:
                raise origin.error(
                    f"{what}s {twin!r} and {name!r} differ only in case or Unicode form, and SQL takes them for one",
                    path,
                    key=True,
                    next_step="rename one of them",
                )
            body = mapping(body, path, origin, f"a kind of node ({listed(kind.kind for kind in NODES)})")
            nodes[name] = _node(name, body, path, origin)
    _check_makers(nodes, origin, problems)
    for name, node in nodes.items():
        _check_inputs(node, ("nodes", name), readable, origin, problems)
    return nodes, readable


def _names_meant(name: str, body: Any) -> list[str]:
    """Return the names that a node makes, as far as what is written tells it, right or wrong."""
    split = body.get("split") if isinstance(body, dict) else None
    sides = [split.get(side) for side in ("true", "false")] if isinstance(split, dict) else [name]
    return [side for side in sides if isinstance(side, str)]


def _check_makers(nodes: dict[str, Node], origin: Origin, problems: Problems) -> None:
    """Refuse a name that two nodes make."""
    makers: dict[str, str] = {}
    for name, node in nodes.items():
        for made in names_of(name, node):
            if name_key(made) in makers:
                problems.add(
                    origin.error(
                        f"the name {made!r} is made twice, or twins of it are",
                        ("nodes", name),
                        key=True,
                        next_step="rename one",
                    )
                )
            makers[name_key(made)] = name


def _check_inputs(node: Node, path: Path, readable: Sequence[str], origin: Origin, problems: Problems) -> None:
    """Refuse a name that a node other than a query reads and nobody makes. Those of queries are read with the SQL."""
    inputs: dict[Path, str] = {}
    if isinstance(node, JoinNode):
        inputs = {("join", side): getattr(node.join, side) for side in ("left", "right")}
        with problems.collect():
            _check_join(node, (*path, "join"), origin)
    elif isinstance(node, SplitNode):
        inputs = {("split", "input"): node.split.input}
    elif isinstance(node, StageNode):
        inputs = {node.place(each): read for each, read in node.inputs.items()}
    for place, read in inputs.items():
        with problems.collect():
            one_of(read, readable, "node", (*path, *place), origin)


def _check_join(node: JoinNode, path: Path, origin: Origin) -> None:
    join = node.join
    if join.how == "cross" and join.on:
        raise origin.error("a cross join has no key", (*path, "on"), next_step="take `on` out, or another `how`")
    if join.how != "cross" and not join.on:
        raise origin.error(
            "a join needs the columns that it is on",
            path,
            next_step="write `on: [column]`; every row with every row must be asked for: `how: cross`",
        )
    if len(join.suffixes) != 2 or join.suffixes[0] == join.suffixes[1]:
        raise origin.error(
            "'suffixes' are two texts that differ", (*path, "suffixes"), next_step='write `suffixes: ["", "_right"]`'
        )
    if join.left == join.right:
        raise origin.error(
            "a join of a node with itself", path, next_step="give it a second name: a transform `select * from …`"
        )


def _node(name: str, body: dict[str, Any], path: Path, origin: Origin) -> Node:
    kinds = [kind for kind in NODES if kind.kind in body]
    there = listed(kind.kind for kind in NODES)
    if len(kinds) > 1:
        raise origin.error(
            f"node {name!r} is {listed(kind.kind for kind in kinds)} at once",
            path,
            key=True,
            next_step="make two nodes of it: one reads the other by its name",
        )
    if not kinds:
        first = next(iter(body), None)
        raise origin.error(
            f"node {name!r} is of unknown kind {first!r}; there are {there}"
            if first
            else f"node {name!r} has no kind; there are {there}",
            (*path, first) if first else path,
            key=True,
            next_step=nearest(first, [kind.kind for kind in NODES]) or "begin it with one of these keys",
        )
    if issubclass(kinds[0], StageNode):
        known_keys(body, keys_of(kinds[0]), path, origin)
        return stage_classes()[kinds[0].kind].read(body, path, origin)
    node = checked_model(kinds[0], body, path, origin)
    if isinstance(node, SourceNode):
        return node.model_copy(update={"source": dataset_name(node.source, (*path, "source"), origin)})
    if isinstance(node, TransformNode) and not node.transform.strip():
        raise origin.error(f"node {name!r} has no SQL", (*path, "transform"), next_step="write one SELECT there")
    if isinstance(node, SplitNode) and not node.split.where.strip():
        raise origin.error(
            f"node {name!r} has no predicate", (*path, "split", "where"), next_step='write `where: "amount > 0"`'
        )
    assert isinstance(node, TransformNode | JoinNode | SplitNode)
    return node
