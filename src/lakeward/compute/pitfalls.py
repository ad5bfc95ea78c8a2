"""What SQL does that few people mean: found in a text to warn of it."""

from __future__ import annotations

from collections.abc import Iterator

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from lakeward.compute.sql import DIALECT


def null_traps(sql: str) -> list[str]:
    """Return warnings of every NOT IN that is never true as soon as its list has a null.

    Args:
        sql: a query, or an expression, that was checked.
    """
    try:
        tree = sqlglot.parse_one(sql, dialect=DIALECT)
    except SqlglotError:
        # It was checked by now: a fragment that can't stand alone has nothing that could be told.
        return []
    return list(dict.fromkeys(_traps(tree)))


def _traps(tree: exp.Expr) -> Iterator[str]:
    for each in tree.find_all(exp.In):
        if not isinstance(each.parent, exp.Not):
            continue
        shown = each.parent.sql(dialect=DIALECT, comments=False)
        shown = shown if len(shown) <= 60 else shown[:57] + "…"
        if each.args.get("query") is not None:
            yield f"{shown} is true for no row as soon as the subquery gives a null: write NOT EXISTS, or an anti join"
        elif any(isinstance(value, exp.Null) for value in each.expressions):
            yield f"{shown} is never true, because its list has a null: take the null out"
        elif any(isinstance(value, exp.Column) for value in each.expressions):
            yield f"{shown} is not true where a column of its list is null"
