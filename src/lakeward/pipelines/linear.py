"""Whether the rows that are new in a source are enough to compute the rows that are new in an output.

A query is linear in a name if its result over more rows of it is its result over the old ones, and that over the new
ones besides: a filter and a projection are, a sum is not. What is not known to be linear is taken not to be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlglot
from sqlglot import exp

from lakeward.compute.aggregating import aggregates
from lakeward.compute.sql import DIALECT
from lakeward.pipelines.graph import Graph
from lakeward.pipelines.nodes import JoinNode, SourceNode, StageNode, TransformNode
from lakeward.pipelines.problems import Problems

CONSTANT, LINEAR, OTHER = "constant", "linear", "other"


@dataclass(frozen=True)
class Linearity:
    """How a name depends on the sources that are read by window.

    Args:
        kind: `constant`: not at all; `linear`: new rows are enough; `other`: they are not.
        reason: why they are not.
    """

    kind: str
    reason: str = ""


def check_required(graph: Graph) -> None:
    """Refuse outputs that require a delta and can never have one: their first build would be their last.

    Raises:
        SpecError: with file, line and the reason.
    """
    problems = Problems()
    for index, output in enumerate(graph.pipeline.spec.outputs):
        found = linearity(graph, output.from_) if output.require_incremental else Linearity(LINEAR)
        if found.kind != LINEAR:
            problems.add(
                graph.pipeline.origin.error(
                    f"output {output.dataset} requires a delta, and can never have one: "
                    f"{found.reason or 'every source is read in full'}",
                    ("outputs", index, "require_incremental"),
                    next_step="take `require_incremental` out, or compute that in another pipeline, of this output",
                )
            )
    problems.raise_all()


def linearity(graph: Graph, name: str) -> Linearity:
    """Return how a name of the graph depends on its sources with the window `delta`, all together."""
    known: dict[str, Linearity] = {}
    for each in graph.needed(name):
        node = graph.node(each)
        if isinstance(node, SourceNode):
            known[each] = Linearity(LINEAR if node.window == "delta" else CONSTANT)
            continue
        kinds = {read: known[read] for read in graph.reads[each]}
        other = next((read for read in kinds.values() if read.kind == OTHER), None)
        if other is not None:
            known[each] = other
        elif all(read.kind == CONSTANT for read in kinds.values()):
            known[each] = Linearity(CONSTANT)
        elif isinstance(node, JoinNode):
            known[each] = _join(each, node, kinds)
        elif isinstance(node, TransformNode):
            tree = sqlglot.parse_one(graph.queries[each].text, dialect=DIALECT)
            moving = {read.casefold() for read, kind in kinds.items() if kind.kind == LINEAR}
            reason = _query(tree, moving)
            if reason is None and aggregates(graph.queries[each].text):
                # Our parser knows some aggregates, the engine all of them, however they are called.
                reason = _AGGREGATES
            known[each] = Linearity(OTHER, f"node {each} {reason}") if reason else Linearity(LINEAR)
        elif isinstance(node, StageNode):
            reason = node.not_linear([name for name, read in node.inputs.items() if kinds[read].kind == LINEAR])
            known[each] = Linearity(OTHER, f"node {each} {reason}") if reason else Linearity(LINEAR)
        else:
            known[each] = Linearity(LINEAR)
    return known[name]


_KEEPS_LEFT = ("inner", "left", "semi", "anti", "cross")
_KEEPS_RIGHT = ("inner", "right", "cross")


def _join(name: str, node: JoinNode, kinds: Mapping[str, Linearity]) -> Linearity:
    left, right = (kinds[side].kind == LINEAR for side in (node.join.left, node.join.right))
    if left and right:
        return Linearity(OTHER, f"node {name} joins new rows with old ones: give one of its sources `window: full`")
    if node.join.how not in (_KEEPS_LEFT if left else _KEEPS_RIGHT):
        side = node.join.left if left else node.join.right
        return Linearity(OTHER, f"node {name} is a {node.join.how} join, whose old rows change with new ones of {side}")
    return Linearity(LINEAR)


_AGGREGATES = "aggregates rows"
_PLAIN: dict[type, set[str]] = {
    exp.Table: {"this", "alias"},
    exp.Subquery: {"this", "alias", "order"},
    exp.Union: {"this", "expression", "distinct", "by_name", "order"},
    exp.Select: {"kind", "expressions", "from_", "joins", "where", "order"},
    exp.Join: {"this", "side", "kind", "on", "using"},
}
"""What each part of a query may have. All else may choose among rows, and a list of that would never be complete."""


def _not_plain(tree: exp.Expr) -> str | None:
    more = [part for part, value in tree.args.items() if value and part not in _PLAIN[type(tree)]]
    return None if not more else _SOME.get(more[0], f"has a part that is not looked into ({more[0].strip('_')})")


def _query(tree: exp.Expr, moving: set[str]) -> str | None:
    """Return why a query is not linear in the names of `moving`, as the end of a sentence; None: it is."""
    if isinstance(tree, exp.Subquery):
        return _not_plain(tree) or _query(tree.this, moving)
    if tree.args.get("with_"):
        return "has common table expressions, which are not looked into: make them nodes"
    if isinstance(tree, exp.Union) and not tree.args.get("distinct"):
        sides = (tree.this, tree.expression)
        return _not_plain(tree) or next((reason for side in sides if (reason := _branch(side, moving))), None)
    if not isinstance(tree, exp.Select):
        return "is no plain SELECT"
    return _select(tree, moving)


def _branch(tree: exp.Expr, moving: set[str]) -> str | None:
    if not any(table.name.casefold() in moving for table in tree.find_all(exp.Table)):
        return "has a branch of UNION ALL that gives the same rows every time"
    return _query(tree, moving)


_SOME = {
    "group": "groups rows",
    "having": "groups rows",
    "distinct": "removes duplicates",
    "qualify": "compares rows with one another (QUALIFY)",
    "limit": "takes only some rows (LIMIT)",
    "offset": "takes only some rows (OFFSET)",
    "sample": "takes only some rows (SAMPLE)",
    "pivots": "pivots rows",
}


def _select(tree: exp.Select, moving: set[str]) -> str | None:
    plain = _not_plain(tree)
    if plain is not None:
        return plain
    if tree.find(exp.Window):
        return "compares rows with one another (a window function)"
    if tree.find(exp.AggFunc):
        return _AGGREGATES
    from_ = tree.args.get("from_")
    if from_ is None:
        return "reads no node in its FROM"
    items: list[tuple[exp.Expr, str]] = [(from_.this, "")]
    for join in tree.args.get("joins") or []:
        if join.args.get("method"):
            return f"has a {join.args['method']} join"
        plain = _not_plain(join)
        if plain is not None:
            return plain
        items.append((join.this, str(join.args.get("side") or join.args.get("kind") or "").upper()))
    inside = [item for item, _ in items if any(_is(table, moving) for table in item.find_all(exp.Table))]
    everywhere = [table for table in tree.find_all(exp.Table) if _is(table, moving)]
    if len(inside) != 1 or len(everywhere) != 1:
        return "reads new rows in more than one place"
    first = items[0][0] is inside[0]
    for position, (item, side) in enumerate(items[1:], start=1):
        kept = side in ("", "INNER", "CROSS") or (side in ("LEFT", "SEMI", "ANTI") and item is not inside[0])
        # A right or full join gives rows of its own side that nothing on the other one meets: new ones change that.
        if not kept or (side in ("LEFT", "SEMI", "ANTI") and not first and _position(items, inside[0]) > position):
            return f"has a {side.lower() or 'inner'} join, whose old rows change with new ones"
    only = inside[0]
    if not isinstance(only, exp.Table):
        return _query(only, moving)
    # A table that only holds the one with the new rows is a join without parentheses, or a function of a subquery.
    return _not_plain(only) if _is(only, moving) else "reads new rows inside of something that is not looked into"


def _is(table: exp.Table, moving: set[str]) -> bool:
    return isinstance(table.this, exp.Identifier) and table.name.casefold() in moving


def _position(items: list[tuple[exp.Expr, str]], wanted: exp.Expr) -> int:
    return next(index for index, (item, _) in enumerate(items) if item is wanted)
