"""Expressions that give the same for the same row, whenever they are computed, and aggregates made of parts."""

from __future__ import annotations

from collections.abc import Sequence

import sqlglot
from sqlglot import exp

from lakeward.compute.sql import DIALECT

_LASTING = (exp.Connector, exp.Abs, exp.Cast, exp.Coalesce, exp.Length, exp.Lower, exp.Round, exp.Trim, exp.Upper)
"""Functions, as the parser sees them, that give the same for the same row today and tomorrow."""

_ADDED = (exp.Sum, exp.Count, exp.CountIf)


def is_lasting(text: str) -> bool:
    """Say whether an expression over a row is known to last: what is not known to is taken not to."""
    return _lasts(sqlglot.parse_one(text, dialect=DIALECT))


def merge_of(text: str) -> str | None:
    """Return how an aggregate of two sets of rows comes of those of each: `sum`, `min` or `max`; None: it does not.

    Args:
        text: one expression over all rows, see `check_aggregate`. A count is merged by `sum`. Whether a merged number
            is exact is up to its type: it is for integers and decimals.
    """
    tree = sqlglot.parse_one(text, dialect=DIALECT)
    if not isinstance(tree, (*_ADDED, exp.Min, exp.Max)):
        return None
    argument, more = tree.this, [name for name, value in tree.args.items() if value and name not in ("this", "big_int")]
    if more or argument is None or argument.find(exp.Distinct, exp.Order, exp.AggFunc) or not _lasts(argument):
        return None
    return "sum" if isinstance(tree, _ADDED) else "min" if isinstance(tree, exp.Min) else "max"


def _lasts(tree: exp.Expr) -> bool:
    return all(isinstance(each, _LASTING) for each in tree.find_all(exp.Func))


def columns_of(text: str, names: Sequence[str]) -> set[str]:
    """Return which of the columns an expression names; SQL takes small and capital letters for the same."""
    folded = {name.casefold(): name for name in names}
    tree = sqlglot.parse_one(text, dialect=DIALECT)
    return {folded[column.name.casefold()] for column in tree.find_all(exp.Column) if column.name.casefold() in folded}
