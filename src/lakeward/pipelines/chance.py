"""Refuses a split whose sides would not fit together: each is computed by a query of its own.

Where the predicate depends on chance or on the time, the two queries see different values, and a row could go to both
sides or to neither. A column that is made by chance and that the predicate does not use does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import sqlglot
from sqlglot import exp

from lakeward.compute.changing import changing
from lakeward.compute.sql import DIALECT
from lakeward.pipelines.nodes import JoinNode, Node, SplitNode, TransformNode, names_of

Columns = frozenset[str] | None
"""The columns of a name that depend on chance or time, case-folded; None: so do its rows."""

_NONE: frozenset[str] = frozenset()
_PLAIN = {"kind", "expressions", "from_", "joins", "where", "order"}
"""The parts of a query of which each row gives rows by itself, and the same number."""


def changing_splits(
    nodes: Mapping[str, Node], order: Iterable[str], makers: Mapping[str, str], texts: Mapping[str, str]
) -> list[str]:
    """Return the split nodes that may send a row to both sides or to neither.

    Args:
        nodes: of a pipeline, by name.
        order: the names that they make, each after what it reads.
        makers: the node that makes each.
        texts: the queries of transforms.
    """
    known: dict[str, Columns] = {}
    found: dict[str, None] = {}
    for name in order:
        node = nodes[makers[name]]
        if isinstance(node, TransformNode):
            known[name] = _transform(texts[name], known)
        elif isinstance(node, JoinNode):
            known[name] = _join(node, known)
        elif isinstance(node, SplitNode):
            columns = known[node.split.input]
            tree = sqlglot.parse_one(f"SELECT ({node.split.where}\n)", dialect=DIALECT)
            if columns is None or changing(f"SELECT ({node.split.where}\n)") or _uses(tree, columns, tree):
                found[makers[name]] = None
            known |= dict.fromkeys(names_of(makers[name], node), columns)
        else:
            # A source; or a stage, whose rows are computed once and kept for all that read them.
            known[name] = _NONE
    return list(found)


def _transform(text: str, known: Mapping[str, Columns]) -> Columns:
    tree = sqlglot.parse_one(text, dialect=DIALECT)
    read = [known[name] for name in known if any(name.casefold() == each for each in _tables(tree))]
    if None in read:
        return None
    columns = frozenset(name for each in read if each is not None for name in each)
    calls = changing(text)
    if not calls and not columns:
        return _NONE
    if not isinstance(tree, exp.Select) or any(value and part not in _PLAIN for part, value in tree.args.items()):
        return None
    outside = tree.copy()
    outside.set("expressions", [exp.Star()])
    if changing(outside.sql(dialect=DIALECT)):
        return None
    made: set[str] = set()
    for each in tree.expressions:
        if each.is_star:
            made |= columns
        # A projection may use the ones before it by their names.
        if changing(exp.select(each.copy()).sql(dialect=DIALECT)) or _uses(each, columns | made, tree):
            if each.find(exp.Unnest, exp.Explode):
                return None
            made.add(each.alias_or_name.casefold())
    return None if _renames(tree) or _uses(outside, columns | made, tree) else frozenset(made)


def _renames(tree: exp.Expr) -> bool:
    """Say whether columns get names that are not written beside them."""
    return (
        tree.find(exp.Columns, exp.Pivot, exp.SetOperation) is not None
        or any(star.args.get("rename") for star in tree.find_all(exp.Star))
        or any(alias.args.get("columns") for alias in tree.find_all(exp.TableAlias))
    )


def _join(node: JoinNode, known: Mapping[str, Columns]) -> Columns:
    sides = [known[node.join.left], known[node.join.right]]
    made: set[str] = set()
    for columns, suffix in zip(sides, node.join.suffixes, strict=True):
        if columns is None or any(name.casefold() in columns for name in node.join.on):
            return None
        made |= columns | {name + suffix.casefold() for name in columns}
    return frozenset(made)


def _tables(tree: exp.Expr) -> set[str]:
    return {table.name.casefold() for table in tree.find_all(exp.Table)}


def _uses(tree: exp.Expr, columns: frozenset[str] | set[str], query: exp.Expr) -> bool:
    """Say whether a part of a query uses one of the columns, by its name or as a part of a whole row."""
    tables = {each.alias_or_name.casefold() for each in query.find_all(exp.Table, exp.Subquery)}
    joined = [each for join in tree.find_all(exp.Join) for each in join.args.get("using") or []]
    names = {each.name.casefold() for each in (*tree.find_all(exp.Column), *joined)}
    # What stands before the dot is a table, or a struct.
    structs = {part.name.casefold() for each in tree.find_all(exp.Column) for part in each.parts[:-1]}
    natural = any(join.args.get("method") for join in tree.find_all(exp.Join))
    return bool(columns) and (
        natural
        or not names.isdisjoint(tables | columns)
        or not structs.isdisjoint(columns)
        or bool(tree.find(exp.Columns))
    )
