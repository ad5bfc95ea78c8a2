"""Reads a user's predicate: one expression over the columns of a row, to be put into a query of ours."""

from __future__ import annotations

import functools

from sqlglot import exp

from lakeward.compute.place import sql_error
from lakeward.compute.sql import DIALECT, analyse, parsed
from lakeward.errors import SqlError


# Every build asks of all that is expected anywhere, to put the pipelines in order, and an answer takes 3 ms.
@functools.lru_cache(maxsize=1024)
def check_predicate(text: str) -> str:
    """Check that a text is one predicate over a row, and return its one rendering (see `Query.canonical`).

    Raises:
        SqlError: it is more or less than one expression, has a subquery or an aggregate, or calls a refused function.
            Its `position` is in `text`.
    """
    before = "SELECT "
    try:
        query = analyse(f"{before}{text}\n AS predicate FROM rows_", ["rows_"])
        tree = parsed(query.text)
        only = tree.expressions[0] if isinstance(tree, exp.Select) and len(tree.expressions) == 1 else None
        found = only.this if isinstance(only, exp.Alias) and only.alias == "predicate" else None
        refused = found.find(exp.Query, exp.AggFunc, exp.Window, exp.Star) if found is not None else None
        if found is None or refused is not None or any(tree.args.get(each) for each in ("where", "joins", "laterals")):
            raise sql_error("this is not one predicate over the columns of a row", text, 0)
    except SqlError as error:
        position = error.fields.get("position")
        moved = max(0, position - len(before)) if isinstance(position, int) else None
        raise sql_error(
            str(error.fields.get("reason") or error.message), text, moved, next_step=error.next_step
        ) from None
    return str(found.sql(dialect=DIALECT, comments=False))
