"""Checks a user's aggregate: one expression over all rows of one table, such as `sum(amount)`."""

from __future__ import annotations

import functools

import sqlglot
from sqlglot import exp

from lakeward.compute.place import sql_error
from lakeward.compute.sql import DIALECT, analyse
from lakeward.errors import SqlError

_BEFORE = "SELECT "
_PARTS = {"expressions", "from_", "kind"}


# Every build asks of all that is expected anywhere, to put the pipelines in order, and an answer takes 2 ms.
@functools.lru_cache(maxsize=1024)
def check_aggregate(text: str) -> str:
    """Check that a text is one expression that may aggregate rows, and return its one rendering.

    Whether it aggregates is known to the engine alone, which knows all aggregates: there, put it beside `count(*)`.

    Raises:
        SqlError: it is more or less than one expression, has a subquery or a window function, or calls a refused
            function. Its `position` is in `text`.
    """
    try:
        query = analyse(f"{_BEFORE}{text}\n AS value FROM rows_", ["rows_"], named_columns=False)
    except SqlError as error:
        position = error.fields.get("position")
        moved = max(0, position - len(_BEFORE)) if isinstance(position, int) else None
        reason = str(error.fields.get("reason") or error.message)
        raise sql_error(reason, text, moved, next_step=error.next_step) from None
    tree = sqlglot.parse_one(query.text, dialect=DIALECT)
    only = tree.expressions[0] if isinstance(tree, exp.Select) and len(tree.expressions) == 1 else None
    found = only.this if isinstance(only, exp.Alias) and only.alias == "value" else None
    more = [part for part, value in tree.args.items() if value and part not in _PARTS]
    if found is None or more or found.find(exp.Query, exp.Window) is not None:
        raise sql_error("this is not one aggregate over rows, as in sum(amount)", text, 0)
    return str(found.sql(dialect=DIALECT, comments=False))
