"""Shows where in a user's SQL something is wrong: line, column, and a caret under the place."""

from __future__ import annotations

from lakeward.errors import SqlError

SHOWN_WIDTH = 120
"""At most this many characters of the line are shown, so that a one-line query of a megabyte stays readable."""


def line_and_column(sql: str, position: int) -> tuple[int, int]:
    """Return the 1-based line and column of a character position; a position past the end is the end."""
    before = sql[: max(0, position)]
    return before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1


def excerpt(sql: str, position: int, first_line: int = 1) -> str:
    """Return the line that holds the position, numbered, with a caret under it.

    Example:
        >>> print(excerpt("select a\\nfrom t, u", 17))
          2 | from t, u
            |         ^
    """
    line, column = line_and_column(sql, position)
    text = sql.split("\n")[line - 1].rstrip("\r")
    start = max(0, column - 1 - SHOWN_WIDTH // 2) if len(text) > SHOWN_WIDTH else 0
    shown = text[start : start + SHOWN_WIDTH]
    # A tab is as wide as the terminal makes it, so the caret's line repeats it instead of counting it.
    padding = "".join("\t" if character == "\t" else " " for character in text[start : column - 1])
    gutter = f"  {first_line + line - 1} | "
    return f"{gutter}{shown}\n{' ' * (len(gutter) - 2)}| {padding}^"


def sql_error(
    reason: str,
    sql: str,
    position: int | None,
    *,
    where: str = "",
    first_line: int = 1,
    next_step: str | None = None,
    **fields: object,
) -> SqlError:
    """Return the error for one place in a query.

    Args:
        reason: what is wrong there, without the place.
        sql: the user's own text.
        position: 0-based character position in `sql`; None if it isn't known.
        where: what the query is part of, put in front ("pipelines/orders.yml:7: node clean").
        first_line: the number of the text's first line, where it is a part of a file.
        next_step: the way out.
        fields: more facts, kept with `reason`, `position`, `line` and `column`.
    """
    prefix = f"{where}: " if where else ""
    if position is None:
        error = SqlError(f"{prefix}{reason}", next_step=next_step)
    else:
        line, column = line_and_column(sql, position)
        line += first_line - 1
        error = SqlError(
            f"{prefix}{reason} (line {line}, column {column})\n{excerpt(sql, position, first_line)}",
            next_step=next_step,
            line=line,
            column=column,
        )
    error.fields.update(fields, reason=reason, position=position)
    return error
